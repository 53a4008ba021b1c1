package node

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/metachaos/metachaos/targets"
)

// The rules that nodes know.
const (
	RulePushDrop       = "push.drop"
	RuleTTLSynchronize = "ttl.synchronize"
	RulePrimaryFreeze  = "primary.freeze"
)

// rulebook holds the rules of one node and ends each with its lease. Leases
// count on the monotonic clock of the node itself, so that a rule lapses also
// when the one who armed it is gone.
type rulebook struct {
	mu    sync.Mutex
	rules map[string]*rule
}

// rule is one armed, cleared or lapsed rule. Fields below the line belong to
// the book's lock.
type rule struct {
	name    string
	until   time.Time
	cleared chan struct{} // closed by clear
	drop    dropConfig    // of push.drop

	// ------
	armed bool
	seen  uint64
	hits  uint64
	rng   *rand.Rand
}

func newRulebook() *rulebook { return &rulebook{rules: map[string]*rule{}} }

// arm adds a rule.
func (b *rulebook) arm(r targets.Rule, drop dropConfig) (*rule, error) {
	switch {
	case r.ID == "":
		return nil, errors.New("set rule: the id is empty; give the rule a name of its own")
	case r.Lease <= 0:
		return nil, fmt.Errorf("set rule %s: the lease is %v; a rule needs a lease above zero, after which it ends by itself", r.ID, r.Lease)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.rules[r.ID]; ok {
		return nil, fmt.Errorf("set rule %s: a rule of that id was armed before; give each rule an id of its own", r.ID)
	}
	made := &rule{name: r.Name, until: time.Now().Add(r.Lease), cleared: make(chan struct{}), drop: drop,
		armed: true, rng: rand.New(rand.NewPCG(r.Seed, 0))}
	b.rules[r.ID] = made
	return made, nil
}

func (r *rule) activeAt(now time.Time) bool { return r.armed && now.Before(r.until) }

// active returns an armed rule of that name, or nil.
func (b *rulebook) active(name string) *rule {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for _, r := range b.rules {
		if r.name == name && r.activeAt(now) {
			return r
		}
	}
	return nil
}

// count adds to what the rule saw and acted on.
func (b *rulebook) count(r *rule, seen, hits uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.seen += seen
	r.hits += hits
}

// drops decides whether a rule loses this push, and counts.
func (b *rulebook) drops(client string, p targets.Push) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for _, id := range slices.Sorted(maps.Keys(b.rules)) { // in one order, so that seeds repeat
		r := b.rules[id]
		if r.name != RulePushDrop || !r.activeAt(now) || !r.drop.matches(client, p) {
			continue
		}
		r.seen++
		if (r.drop.count > 0 && r.hits >= r.drop.count) || r.rng.Float64() >= r.drop.share {
			continue
		}
		r.hits++
		return true
	}
	return false
}

func (b *rulebook) state(id string) targets.RuleState {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, ok := b.rules[id]
	if !ok {
		return targets.RuleState{}
	}
	return targets.RuleState{Armed: r.activeAt(time.Now()), Hits: r.hits, Seen: r.seen}
}

func (b *rulebook) clear(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r, ok := b.rules[id]; ok && r.armed {
		r.armed = false
		close(r.cleared)
	}
}

// dropConfig is the "with" of push.drop.
type dropConfig struct {
	share  float64        // of the matching pushes, 0 to 1
	count  uint64         // at most so many; 0 is no limit
	object targets.Object // zero matches any
	client string         // a prefix; empty matches any
}

func (d dropConfig) matches(client string, p targets.Push) bool {
	if p.Heartbeat || len(p.Entries) == 0 || !strings.HasPrefix(client, d.client) {
		return false
	}
	return d.object == (targets.Object{}) ||
		slices.ContainsFunc(p.Entries, func(e targets.Entry) bool { return e.Object == d.object })
}

func parseDrop(r targets.Rule) (dropConfig, error) {
	d := dropConfig{share: 1}
	if err := knownKeys(r, "share", "count", "object", "client"); err != nil {
		return d, err
	}
	var err error
	if text, ok := r.With["share"]; ok {
		if d.share, err = strconv.ParseFloat(text, 64); err != nil || !(d.share >= 0 && d.share <= 1) {
			return d, fmt.Errorf("set rule %s: share is %q; want a number from 0 to 1", r.ID, text)
		}
	}
	if text, ok := r.With["count"]; ok {
		if d.count, err = strconv.ParseUint(text, 10, 64); err != nil {
			return d, fmt.Errorf("set rule %s: count is %q; want a whole number, 0 for no limit", r.ID, text)
		}
	}
	if text := r.With["object"]; text != "" {
		if d.object, err = targets.ParseObject(text); err != nil {
			return d, fmt.Errorf("set rule %s: %w", r.ID, err)
		}
	}
	d.client = r.With["client"]
	return d, nil
}

// parseSynchronize reads the "with" of ttl.synchronize.
func parseSynchronize(r targets.Rule) (time.Duration, error) {
	if err := knownKeys(r, "in"); err != nil {
		return 0, err
	}
	text, ok := r.With["in"]
	if !ok {
		return 500 * time.Millisecond, nil
	}
	in, err := time.ParseDuration(text)
	if err != nil || in <= 0 {
		return 0, fmt.Errorf("set rule %s: in is %q; want a duration above zero, for example 500ms", r.ID, text)
	}
	return in, nil
}

func parseFreeze(r targets.Rule) error {
	if err := knownKeys(r, "mode"); err != nil {
		return err
	}
	if mode, ok := r.With["mode"]; ok && mode != "write-stall" {
		return fmt.Errorf("set rule %s: mode is %q; the rule knows write-stall only (a stopped process needs no rule)", r.ID, mode)
	}
	return nil
}

func knownKeys(r targets.Rule, known ...string) error {
	for _, key := range slices.Sorted(maps.Keys(r.With)) {
		if !slices.Contains(known, key) {
			return fmt.Errorf("set rule %s: %s has no setting %q; it has %s", r.ID, r.Name, key, strings.Join(known, ", "))
		}
	}
	return nil
}

func unknownRule(r targets.Rule, self targets.NodeID, known ...string) error {
	return fmt.Errorf("set rule %s: node %s has no rule %q; it has %s", r.ID, self, r.Name, strings.Join(known, ", "))
}
