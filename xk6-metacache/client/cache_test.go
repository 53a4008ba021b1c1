package client

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/metachaos/metachaos/targets"
)

var (
	r1 = targets.Object{Kind: targets.KindRoute, ID: "r1"}
	r2 = targets.Object{Kind: targets.KindRoute, ID: "r2"}
)

func newRand() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

func entry(o targets.Object, epoch targets.Epoch, owner string) targets.Entry {
	return targets.Entry{Object: o, Epoch: epoch, Owner: owner}
}

func TestLookup(t *testing.T) {
	c := New(Policy{TTL: 10 * time.Second}, newRand())
	c.Pulled(time.Second, entry(r1, 3, "s1"))
	for _, k := range []struct {
		name string
		at   time.Duration
		of   targets.Object
		want targets.CacheResult
	}{
		{"never pulled", time.Second, r2, targets.CacheMiss},
		{"fresh", time.Second, r1, targets.CacheHit},
		{"last instant", 11*time.Second - 1, r1, targets.CacheHit},
		{"the deadline itself is too late", 11 * time.Second, r1, targets.CacheExpired},
	} {
		if _, got := c.Lookup(k.at, k.of); got != k.want {
			t.Errorf("%s: %s, want %s", k.name, got, k.want)
		}
	}
	if e, _ := c.Lookup(time.Hour, r1); e != entry(r1, 3, "s1") {
		t.Errorf("an expired entry is still told: %+v", e)
	}
}

func TestNoTTLNeverExpires(t *testing.T) {
	c := New(Policy{}, newRand())
	c.Pulled(0, entry(r1, 1, "s1"))
	if _, got := c.Lookup(math.MaxInt64, r1); got != targets.CacheHit {
		t.Errorf("entry without TTL: %s", got)
	}
}

// The expiry of a pulled entry lies within TTL·(1 ± jitter), and fills that
// range evenly: the mean of many draws is the TTL.
func TestJitterSpreadsExpiries(t *testing.T) {
	p := Policy{TTL: 10 * time.Second, Jitter: 0.3}
	c := New(p, newRand())
	var sum time.Duration
	const n = 20_000
	for range n {
		c.Pulled(0, entry(r1, 1, "s1"))
		x := c.Expiry(r1)
		if x < 7*time.Second || x > 13*time.Second {
			t.Fatalf("expiry %s outside 7 s to 13 s", x)
		}
		sum += x
	}
	if mean := sum / n; mean < 9950*time.Millisecond || mean > 10050*time.Millisecond {
		t.Errorf("mean lifetime %s, want 10 s", mean)
	}
}

func TestPushed(t *testing.T) {
	held := []targets.Entry{entry(r1, 5, "s1")}
	for _, k := range []struct {
		name    string
		policy  Policy
		push    targets.Push
		want    PushResult
		epoch   targets.Epoch
		expires time.Duration
	}{
		{"newer is applied and keeps its expiry", Policy{TTL: time.Minute, OrderedPush: true},
			targets.Push{Seq: 2, Entries: []targets.Entry{entry(r1, 6, "s2")}}, PushResult{Applied: 1}, 6, time.Minute},
		{"older is ignored when ordered", Policy{TTL: time.Minute, OrderedPush: true},
			targets.Push{Seq: 2, Entries: []targets.Entry{entry(r1, 4, "s2")}}, PushResult{}, 5, time.Minute},
		{"older wins when not ordered", Policy{TTL: time.Minute},
			targets.Push{Seq: 2, Entries: []targets.Entry{entry(r1, 4, "s2")}}, PushResult{Applied: 1}, 4, time.Minute},
		{"an object that is not cached is left to a pull", Policy{TTL: time.Minute},
			targets.Push{Seq: 2, Entries: []targets.Entry{entry(r2, 9, "s2")}}, PushResult{}, 5, time.Minute},
		{"a hole is a gap", Policy{TTL: time.Minute}, targets.Push{Seq: 4}, PushResult{Gap: true}, 5, time.Minute},
		{"a repeated number is no gap", Policy{TTL: time.Minute}, targets.Push{Seq: 1}, PushResult{}, 5, time.Minute},
		{"a common deadline without jitter hits exactly", Policy{TTL: time.Minute},
			targets.Push{Seq: 2, ExpireIn: 3 * time.Second}, PushResult{Expired: true}, 5, 4 * time.Second},
	} {
		t.Run(k.name, func(t *testing.T) {
			c := New(k.policy, newRand())
			c.Pulled(0, held[0])
			c.Pushed(0, targets.Push{Seq: 1})
			if got := c.Pushed(time.Second, k.push); got != k.want {
				t.Errorf("result %+v, want %+v", got, k.want)
			}
			if e, _ := c.Lookup(0, r1); e.Epoch != k.epoch || c.Expiry(r1) != k.expires {
				t.Errorf("now epoch %d until %s, want %d until %s", e.Epoch, c.Expiry(r1), k.epoch, k.expires)
			}
		})
	}
}

// What changed between two streams was not pushed: the first message of a new
// one is a gap, for those who cache anything.
func TestAStreamBeginsWithAGap(t *testing.T) {
	c := New(Policy{}, newRand())
	gap := func(seq uint64) bool { return c.Pushed(0, targets.Push{Seq: seq, Heartbeat: true}).Gap }
	for _, step := range []struct {
		name string
		seq  uint64
		do   func()
		want bool
	}{
		{"nothing is cached", 1, c.Subscribed, false},
		{"nor was anything at a hole", 5, func() {}, false},
		{"cached before the stream stood", 1, func() { c.Pulled(0, entry(r1, 1, "s1")); c.Subscribed() }, true},
		{"the next in order", 2, func() {}, false},
		{"a new stream, though its numbers fit", 3, func() { c.Subscribed(); c.lastSeq = 2 }, true},
		{"a stream that lost its first message", 2, func() { c.Subscribed(); c.suspect = false }, true},
		{"late", 1, func() {}, false},
		{"a hole", 4, func() {}, true},
		{"the pull after it failed", 5, c.Unrepaired, true},
		{"the pull after it did not", 6, func() {}, false},
	} {
		step.do()
		if got := gap(step.seq); got != step.want {
			t.Errorf("%s: gap %v, want %v", step.name, got, step.want)
		}
	}
}

// A fleet that was warmed behaves as one that has run for long: in every
// stretch of time, from the very first, as many entries expire as later.
func TestWarmedCachesExpireAtASteadyRate(t *testing.T) {
	const clients, ttl, bins = 100_000, 100 * time.Second, 20
	for _, jitter := range []float64{0, 0.2, 1} {
		rng := newRand()
		var expiries [bins]int
		for i := range clients {
			c := New(Policy{TTL: ttl, Jitter: jitter}, rng)
			c.Warmed(0, entry(r1, 1, "s1"), (float64(i)+0.5)/clients)
			for at := c.Expiry(r1); at < ttl; at = c.Expiry(r1) { // every expiry is followed by a pull
				expiries[at*bins/ttl]++
				c.Pulled(at, entry(r1, 1, "s1"))
			}
		}
		for bin, n := range expiries {
			if off := math.Abs(float64(n)*bins/clients - 1); off > 0.06 { // 4 standard deviations
				t.Errorf("jitter %g: %d expiries in stretch %d of %d, want about %d", jitter, n, bin+1, bins, clients/bins)
			}
		}
	}
}

func TestWarmedWithoutTTLNeverExpires(t *testing.T) {
	c := New(Policy{}, newRand())
	c.Warmed(0, entry(r1, 1, "s1"), 0.5)
	if c.Expiry(r1) != 0 {
		t.Errorf("expires at %s", c.Expiry(r1))
	}
}

// With ordered pushes the epoch that a client holds never goes down, whatever
// order pulls and pushes arrive in.
func TestOrderedEpochsNeverGoDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := New(Policy{TTL: time.Second, OrderedPush: true}, newRand())
		var newest targets.Epoch
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			epoch := targets.Epoch(rapid.IntRange(1, 20).Draw(t, "epoch"))
			now := time.Duration(i) * time.Millisecond
			if rapid.Bool().Draw(t, "pull") {
				c.Pulled(now, entry(r1, epoch, "s1"))
				newest = max(newest, epoch)
			} else if c.Pushed(now, targets.Push{Seq: uint64(i + 1), Entries: []targets.Entry{entry(r1, epoch, "s1")}}).Applied > 0 {
				newest = max(newest, epoch)
			}
			if e, result := c.Lookup(now, r1); result != targets.CacheMiss && e.Epoch != newest {
				t.Fatalf("holds epoch %d, newest applied %d", e.Epoch, newest)
			}
		}
	})
}

func TestEpochs(t *testing.T) {
	objects := []targets.Object{r1, r2}
	for _, k := range []struct {
		name   string
		send   bool
		pulled []targets.Object
		now    time.Duration
		want   int
		result targets.CacheResult
	}{
		{"the policy sends none", false, objects, 0, 0, targets.CacheNone},
		{"all cached", true, objects, 0, 2, targets.CacheHit},
		{"one is missing", true, objects[:1], 0, 1, targets.CacheMiss},
		{"one is missing and one has expired", true, objects[:1], time.Hour, 1, targets.CacheMiss},
		{"expired ones are still sent", true, objects, time.Hour, 2, targets.CacheExpired},
	} {
		c := New(Policy{Epochs: k.send, TTL: time.Minute}, newRand())
		for _, o := range k.pulled {
			c.Pulled(0, entry(o, 5, "s1"))
		}
		got, result := c.Epochs(k.now, objects)
		if len(got) != k.want || result != k.result || (got == nil) == k.send || k.want > 0 && got[r1] != 5 {
			t.Errorf("%s: %v, %q; want %d, %q", k.name, got, result, k.want, k.result)
		}
	}
}
