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
	next := cached{epoch: e.Epoch, owner: e.Owner}
	if c.policy.TTL > 0 {
		next.expires = now + max(1, c.policy.lifetime(c.rng))
	}
	c.entries[e.Object] = next
	return newer
}

// PushResult is what a push did.
type PushResult struct {
	Applied int  // entries that replaced a cached one
	Gap     bool // pushes are missing before this one
	Expired bool // the push set a common deadline
}

// Pushed takes a push. Entries that the client does not cache are ignored: it
// will pull them when it needs them. A pushed entry keeps the expiry of the
// one that it replaces, since a push is no proof that the client still hears
// all pushes.
func (c *Cache) Pushed(now time.Duration, p targets.Push) PushResult {
	var r PushResult
	if p.Seq > c.lastSeq {
		r.Gap = c.lastSeq != 0 && p.Seq != c.lastSeq+1
		c.lastSeq = p.Seq
	}
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

// Resubscribed tells the cache that its push stream starts anew, with
// sequence numbers from 1. What was pushed in between is lost, so it reports
// a gap unless this is the first subscription.
func (c *Cache) Resubscribed(first bool) PushResult {
	c.lastSeq = 0
	return PushResult{Gap: !first}
}

// Objects returns the cached objects in no particular order.
func (c *Cache) Objects() []targets.Object {
	out := make([]targets.Object, 0, len(c.entries))
	for o := range c.entries {
		out = append(out, o)
	}
	return out
}

// Epochs returns the epochs held of every cached object, or nil when the
// policy sends none.
func (c *Cache) Epochs() map[targets.Object]targets.Epoch {
	if !c.policy.Epochs {
		return nil
	}
	out := make(map[targets.Object]targets.Epoch, len(c.entries))
	for o, e := range c.entries {
		out[o] = e.epoch
	}
	return out
}
