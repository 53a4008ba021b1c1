package client

import (
	"math/rand/v2"
	"time"

	"github.com/metachaos/metachaos/targets"
)

// Cache is what one logical client holds. It is not safe for concurrent use.
type Cache struct {
	policy  Policy
	rng     *rand.Rand
	entries map[targets.Object]cached
	lastSeq uint64
	suspect bool // changes may have been missed, whatever the next sequence number
}

type cached struct {
	epoch   targets.Epoch
	owner   string
	expires time.Duration // offset from the run's base; 0 is never
}

// New returns an empty cache that draws its jitter from rng.
func New(p Policy, rng *rand.Rand) *Cache {
	return &Cache{policy: p, rng: rng, entries: map[targets.Object]cached{}}
}

// Lookup returns what the client holds of an object and whether it may use it.
func (c *Cache) Lookup(now time.Duration, o targets.Object) (targets.Entry, targets.CacheResult) {
	e, ok := c.entries[o]
	switch {
	case !ok:
		return targets.Entry{Object: o}, targets.CacheMiss
	case e.expires != 0 && e.expires <= now:
		return targets.Entry{Object: o, Epoch: e.epoch, Owner: e.owner}, targets.CacheExpired
	}
	return targets.Entry{Object: o, Epoch: e.epoch, Owner: e.owner}, targets.CacheHit
}

// Expiry returns when the entry of an object expires: an offset from the
// run's base, or 0 when it never does or is not cached.
func (c *Cache) Expiry(o targets.Object) time.Duration { return c.entries[o].expires }

// Pulled takes the answer of the control plane to a pull and starts the TTL
// of the entry anew. It reports whether the entry was newer than the cached
// one.
func (c *Cache) Pulled(now time.Duration, e targets.Entry) bool {
	old, ok := c.entries[e.Object]
	newer := !ok || e.Epoch > old.epoch
	if !newer && c.policy.OrderedPush && e.Epoch < old.epoch {
		e.Epoch, e.Owner = old.epoch, old.owner // an old answer, overtaken by a push
	}
	c.put(e, now, c.policy.lifetime(c.rng))
	return newer
}

// Warmed stores an entry as a client holds it that has been at work for long:
// pulled some time ago, with the share rest (0 … 1) of its life to come. Over
// clients whose shares are spread evenly, the rate of expiries is then from
// the first moment on what it stays: one per client and TTL.
func (c *Cache) Warmed(now time.Duration, e targets.Entry, rest float64) {
	c.put(e, now, time.Duration(rest*float64(c.policy.lifetimeMet(c.rng))))
}

func (c *Cache) put(e targets.Entry, now, life time.Duration) {
	next := cached{epoch: e.Epoch, owner: e.Owner}
	if c.policy.TTL > 0 {
		next.expires = now + max(1, life)
	}
	c.entries[e.Object] = next
}

// PushResult is what a push did.
type PushResult struct {
	Applied int  // entries that replaced a cached one
	Gap     bool // what is cached may lack changes from before this push
	Expired bool // the push set a common deadline
}

// Pushed takes a push. Entries that the client does not cache are ignored: it
// will pull them when it needs them. A pushed entry keeps the expiry of the
// one that it replaces, since a push is no proof that the client still hears
// all pushes.
func (c *Cache) Pushed(now time.Duration, p targets.Push) PushResult {
	// A client that caches nothing can have missed nothing.
	r := PushResult{Gap: (c.suspect || p.Seq > c.lastSeq+1) && len(c.entries) > 0}
	c.suspect = false
	c.lastSeq = max(c.lastSeq, p.Seq)
	for _, e := range p.Entries {
		old, ok := c.entries[e.Object]
		if !ok || c.policy.OrderedPush && e.Epoch <= old.epoch {
			continue
		}
		old.epoch, old.owner = e.Epoch, e.Owner
		c.entries[e.Object] = old
		r.Applied++
	}
	if p.ExpireIn > 0 {
		r.Expired = true
		for o, e := range c.entries {
			e.expires = now + p.ExpireIn + c.policy.spread(c.rng)
			c.entries[o] = e
		}
	}
	return r
}

// Subscribed tells the cache that a push stream begins, with sequence numbers
// from 1. What changed before its first message was not pushed, so that
// message is a gap: to pull any earlier could miss a change just as well.
func (c *Cache) Subscribed() { c.lastSeq, c.suspect = 0, true }

// Unrepaired tells the cache that the pull after a gap failed. The next
// message is a gap then, be it only a heartbeat.
func (c *Cache) Unrepaired() { c.suspect = true }

// Objects returns the cached objects in no particular order.
func (c *Cache) Objects() []targets.Object {
	out := make([]targets.Object, 0, len(c.entries))
	for o := range c.entries {
		out = append(out, o)
	}
	return out
}

// Epochs returns the epochs held of those of the objects that are cached, and
// what the cache says of all of them together: a miss if one is not cached,
// and else expired if one has expired. It returns nil and no result when the
// policy sends no epochs.
func (c *Cache) Epochs(now time.Duration, objects []targets.Object) (map[targets.Object]targets.Epoch, targets.CacheResult) {
	if !c.policy.Epochs {
		return nil, targets.CacheNone
	}
	out := make(map[targets.Object]targets.Epoch, len(objects))
	all := targets.CacheHit
	for _, o := range objects {
		e, result := c.Lookup(now, o)
		if result == targets.CacheMiss {
			all = targets.CacheMiss
			continue
		}
		if result == targets.CacheExpired && all == targets.CacheHit {
			all = targets.CacheExpired
		}
		out[o] = e.Epoch
	}
	return out, all
}
