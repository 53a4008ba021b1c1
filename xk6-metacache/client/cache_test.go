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

func TestResubscribedIsAGapButNotAtFirst(t *testing.T) {
	c := New(Policy{}, newRand())
	if c.Resubscribed(true).Gap {
		t.Error("the first subscription is no gap")
	}
	c.Pushed(0, targets.Push{Seq: 7})
	if !c.Resubscribed(false).Gap {
		t.Error("a broken stream may have lost pushes")
	}
	if c.Pushed(0, targets.Push{Seq: 1}).Gap {
		t.Error("numbers begin anew")
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

func TestEpochsAreSentOnlyIfThePolicySaysSo(t *testing.T) {
	for _, send := range []bool{true, false} {
		c := New(Policy{Epochs: send}, newRand())
		c.Pulled(0, entry(r1, 5, "s1"))
		if got := c.Epochs(); (got != nil) != send || send && got[r1] != 5 {
			t.Errorf("epochs on=%v: %v", send, got)
		}
	}
}
