package proxy

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
)

// Rule selects messages that vanish.
type Rule struct {
	// Method is a full method name ("/package.Service/Method"), the last part of
	// one ("Watch"), or empty for every method.
	Method string
	// Direction of the messages; required.
	Direction Direction
	// Share of the messages that vanish, from 0 (none) to 1 (all).
	Share float64
	// Count is how many vanish at most, over all streams; 0 means any number.
	Count uint64
	// Seed makes the choice repeatable: the n-th message of the n-th stream has
	// the same fate in every run.
	Seed uint64
	// Keep, if set, spares the messages for which it returns true; they are not
	// counted as seen. It is called concurrently, and may not keep the bytes.
	Keep func(method string, message []byte) bool
}

func (r Rule) validate() error {
	if r.Direction != ToServer && r.Direction != ToClient {
		return fmt.Errorf("arm rule: direction is %q; want %s or %s", r.Direction, ToServer, ToClient)
	}
	if !(r.Share >= 0 && r.Share <= 1) { // also false for NaN
		return fmt.Errorf("arm rule: share is %v; want 0 to 1", r.Share)
	}
	return nil
}

func (r Rule) matches(d Direction, method string) bool {
	if r.Direction != d {
		return false
	}
	return r.Method == "" || r.Method == method || strings.HasSuffix(method, "/"+r.Method)
}

// Armed is a rule in force.
type Armed struct {
	rule    Rule
	proxy   *Proxy
	seen    atomic.Uint64
	dropped atomic.Uint64
}

// Counts returns how many messages the rule has looked at, and how many of
// those it made vanish. It works also after Disarm.
func (a *Armed) Counts() (seen, dropped uint64) { return a.seen.Load(), a.dropped.Load() }

// Disarm ends the rule. Disarming twice is harmless.
func (a *Armed) Disarm() { a.proxy.disarm(a) }

// drops decides about one message, given the stream's own dice.
func (a *Armed) drops(method string, message []byte, dice *rand.Rand) bool {
	if a.rule.Keep != nil && a.rule.Keep(method, message) {
		return false
	}
	a.seen.Add(1)
	if dice.Float64() >= a.rule.Share {
		return false
	}
	for {
		n := a.dropped.Load()
		if a.rule.Count > 0 && n >= a.rule.Count {
			return false
		}
		if a.dropped.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// path is one direction of one stream. It is used by one goroutine.
type path struct {
	proxy     *Proxy
	direction Direction
	method    string
	stream    uint64
	dice      map[*Armed]*rand.Rand
}

func (w *path) drops(message []byte) bool {
	for _, a := range *w.proxy.rules.Load() {
		if a.rule.matches(w.direction, w.method) && a.drops(w.method, message, w.diceOf(a)) {
			return true
		}
	}
	return false
}

// diceOf gives each rule its own dice on each stream, so that the number of
// rules and the interleaving of streams change no decision.
func (w *path) diceOf(a *Armed) *rand.Rand {
	d := w.dice[a]
	if d == nil {
		if w.dice == nil {
			w.dice = map[*Armed]*rand.Rand{}
		}
		d = rand.New(rand.NewPCG(a.rule.Seed, w.stream))
		w.dice[a] = d
	}
	return d
}
