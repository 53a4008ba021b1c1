package fleet_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference"
	"github.com/metachaos/metachaos/xk6-metacache/fleet"
)

func TestReadWriteRead(t *testing.T) {
	live(t, reference.Config{}, nil, func(t *testing.T, w *world) {
		w.settle()
		key := w.keyOf("s1")
		first := w.read(0, key)
		if string(first.Documents[0].Value) == "" || first.Event.Version != 1 || first.Event.Cache != targets.CacheMiss || first.Owner != "s1" {
			t.Errorf("the first read: %+v", first)
		}
		wrote := w.done(w.fleet.Write(t.Context(), 0, key, []byte("new")))
		e := wrote.Event
		want := targets.Event{Start: e.Start, End: e.End, Client: "c-0", Verb: targets.EventWrite, Object: w.Place(key), Key: key,
			Outcome: targets.Done, Sent: 1, Served: 1, Node: "s1-0", Shard: "s1", Cache: targets.CacheHit, HopCount: 1, Documents: 1, Version: 2}
		if !reflect.DeepEqual(e, want) {
			t.Errorf("the write is recorded as\n%+v, want\n%+v", e, want)
		}
		time.Sleep(time.Second) // it replicates
		again := w.read(0, key)
		if string(again.Documents[0].Value) != "new" || again.Event.Cache != targets.CacheHit || again.Event.Hops != nil || again.Event.Node == "s1-0" {
			t.Errorf("the second read: %+v", again)
		}
		if got := len(w.events); got != 4 { // a pull, a read, a write, a read
			t.Errorf("%d events: %+v", got, w.events)
		}
	})
}

func TestPreferenceDecidesWhereReadsGo(t *testing.T) {
	for _, c := range []struct {
		preference targets.Preference
		replicas   int
		want       []targets.NodeID
	}{
		{targets.PreferPrimary, 3, []targets.NodeID{"s1-0"}},
		{targets.PreferSecondary, 3, []targets.NodeID{"s1-1", "s1-2"}},
		{targets.PreferSecondary, 1, []targets.NodeID{"s1-0"}}, // there is no other
	} {
		live(t, reference.Config{Replicas: c.replicas}, func(f *fleet.Config) { f.Preference = c.preference }, func(t *testing.T, w *world) {
			w.settle()
			key, seen := w.keyOf("s1"), map[targets.NodeID]bool{}
			for range 40 {
				seen[w.read(0, key).Event.Node] = true
			}
			if len(seen) != len(c.want) {
				t.Errorf("%s of %d: asked %v, want %v", c.preference, c.replicas, seen, c.want)
			}
			for _, n := range c.want {
				if !seen[n] {
					t.Errorf("%s of %d: asked %v, want %v", c.preference, c.replicas, seen, c.want)
				}
			}
		})
	}
}

// withoutPushes is a fleet that hears of no change, and whose entries live
// long: what it learns it learns from refusals.
func withoutPushes(f *fleet.Config) {
	f.Policy.TTL, f.Policy.GapPull = time.Hour, false
	f.Preference = targets.PreferPrimary
}

func TestMismatchRefreshesAfterALostPush(t *testing.T) {
	live(t, reference.Config{}, withoutPushes, func(t *testing.T, w *world) {
		w.settle()
		w.rule("deaf", "push.drop", nil)
		key := w.keyOf("s1")
		w.read(0, key)
		w.migrate(key, "s2", targets.StageCleaned)
		w.settle()
		r := w.read(0, key)
		// The new owner's primary has not been told either, and refreshes.
		want := []targets.Hop{
			{Node: "s1-0", Epoch: 1, Served: 2, Code: targets.CodeStaleEpoch, Owner: "s2"},
			{Node: "s2-0", Epoch: 2, Served: 1, Code: targets.CodeNodeBehind, Owner: "s1"},
			{Node: "s2-0", Epoch: 2, Served: 2, Owner: "s2"},
		}
		if !reflect.DeepEqual(r.Event.Hops, want) || r.Event.HopCount != len(want) {
			t.Errorf("%d hops %+v, want %+v", r.Event.HopCount, r.Event.Hops, want)
		}
		if r.Held != 1 || r.EpochLag != 1 || r.Redirects != 1 || r.Loop || r.Refusals[0] != targets.CodeStaleEpoch || r.Owner != "s2" ||
			r.Event.Sent != 2 || r.Event.Served != 2 || r.Event.Shard != "s2" || r.Event.Cache != targets.CacheHit {
			t.Errorf("the read: %+v", r)
		}
		pulls := w.of(targets.EventPull, targets.CauseMismatch)
		if len(pulls) != 1 || pulls[0].Served != 2 || pulls[0].Applied != 1 || pulls[0].Object != w.Place(key) || pulls[0].Shared {
			t.Errorf("pulls: %+v", pulls)
		}
		if again := w.read(0, key); again.Event.HopCount != 1 || again.EpochLag != 0 {
			t.Errorf("the next read: %+v", again)
		}
	})
}

// Without epochs nobody refuses, so that nobody notices either.
func TestWithoutEpochsAStaleClientReadsAnEmptyShard(t *testing.T) {
	live(t, reference.Config{}, func(f *fleet.Config) { withoutPushes(f); f.Policy.Epochs = false }, func(t *testing.T, w *world) {
		w.settle()
		w.rule("deaf", "push.drop", nil)
		key := w.keyOf("s1")
		w.read(0, key)
		w.migrate(key, "s2", targets.StageCleaned)
		r := w.read(0, key)
		if r.Event.Sent != 0 || r.Event.Served != 0 || r.Event.Shard != "s1" || len(r.Documents) != 0 || r.EpochLag != 0 {
			t.Errorf("the read: %+v", r)
		}
	})
}

func TestRedirectsAreFollowedWithoutRefresh(t *testing.T) {
	live(t, reference.Config{}, func(f *fleet.Config) { withoutPushes(f); f.Policy.RefreshOnMismatch = false }, func(t *testing.T, w *world) {
		w.settle()
		w.rule("deaf", "push.drop", nil)
		key := w.keyOf("s1")
		w.read(0, key)
		w.migrate(key, "s2", targets.StageCleaned)
		for range 2 { // it learns nothing from it
			if r := w.read(0, key); r.Redirects != 1 || r.Event.HopCount < 2 || r.Event.Shard != "s2" {
				t.Errorf("the read: %+v", r)
			}
		}
		if pulls := w.of(targets.EventPull, targets.CauseMismatch); len(pulls) > 0 {
			t.Errorf("pulls: %+v", pulls)
		}
	})
}

// An entry that has expired still serves when the control plane is down or
// hangs; one that was never there cannot.
func TestLastKnownGood(t *testing.T) {
	for name, hurdle := range map[string]func(context.Context, targets.Fetch) error{"down": down, "hangs": hang} {
		for _, singleflight := range []bool{true, false} {
			live(t, reference.Config{}, func(f *fleet.Config) { f.Policy.TTL, f.Policy.Singleflight = 5*time.Second, singleflight }, func(t *testing.T, w *world) {
				w.settle()
				known, unknown := w.keyOf("s1"), w.keyOf("s2")
				w.read(0, known)
				w.impede(hurdle)
				time.Sleep(10 * time.Second)
				r := w.read(0, known)
				if r.Event.Cache != targets.CacheExpired || r.Event.Served != 1 {
					t.Errorf("%s: a known entry: %+v", name, r)
				}
				pull := w.of(targets.EventPull, targets.CauseTTL)
				wantOutcome, wantCode := targets.Refused, targets.CodeControlDown
				if name == "hangs" {
					wantOutcome, wantCode = targets.Unknown, targets.CodeTimeout
				}
				if len(pull) != 1 || pull[0].Outcome != wantOutcome || pull[0].Code != wantCode {
					t.Errorf("%s: the pull: %+v, want %s %s", name, pull, wantOutcome, wantCode)
				}
				r = w.fleet.Read(t.Context(), 0, unknown)
				if r.Event.Outcome != targets.Refused || r.Event.Code != targets.CodeControlDown || r.Event.HopCount != 0 || r.Event.Cache != targets.CacheMiss {
					t.Errorf("%s: an entry that is not known: %+v", name, r)
				}
			})
		}
	}
}

// The control plane is gone and the range has moved: the refusal names the
// new owner, and that is enough.
func TestARefusalIsTrustedWhenTheControlPlaneIsGone(t *testing.T) {
	live(t, reference.Config{}, withoutPushes, func(t *testing.T, w *world) {
		w.settle()
		w.rule("deaf", "push.drop", nil)
		key := w.keyOf("s1")
		w.read(0, key)
		w.migrate(key, "s2", targets.StageCleaned)
		w.impede(down)
		if r := w.read(0, key); r.Event.Shard != "s2" || r.Event.Sent != 2 {
			t.Errorf("the read: %+v", r)
		}
	})
}

func TestTimeouts(t *testing.T) {
	live(t, reference.Config{Replicas: 2}, func(f *fleet.Config) { f.Timeout = 700 * time.Millisecond }, func(t *testing.T, w *world) {
		w.settle()
		key := w.keyOf("s1")
		w.read(0, key)
		w.rule("stall", "primary.freeze", nil)
		wrote := w.fleet.Write(t.Context(), 0, key, []byte("x"))
		if e := wrote.Event; e.Outcome != targets.Unknown || e.Code != targets.CodeTimeout || e.End-e.Start != 700*time.Millisecond || e.Shard != "s1" || e.Node != "s1-0" {
			t.Errorf("a write that hangs: %+v", e)
		}
		// A restarted secondary cannot refresh while its primary is stalled: it
		// refuses until the reader has no time left. The application sees a
		// time-out, and nothing of it can have happened.
		if err := w.Restart(t.Context(), "s1-1"); err != nil {
			t.Fatal(err)
		}
		r := w.fleet.Read(t.Context(), 0, key)
		if e := r.Event; e.Outcome != targets.Refused || e.Code != targets.CodeTimeout || e.End-e.Start != 700*time.Millisecond ||
			e.Shard != "s1" || len(e.Hops) < 3 || r.Refusals[0] != targets.CodeUnknownOwnership {
			t.Errorf("a read that is refused until its end: %+v", e)
		}
		cut, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(100*time.Millisecond, func() { cancel(errors.New("the iteration ends")) })
		if e := w.fleet.Read(cut, 0, key).Event; e.Outcome != targets.Refused || e.End-e.Start != 100*time.Millisecond {
			t.Errorf("a read whose iteration ends: %+v", e)
		}
	})
}

func TestRetriesAreBounded(t *testing.T) {
	live(t, reference.Config{Replicas: 2, RefreshLimit: time.Hour}, func(f *fleet.Config) {
		f.Policy.MaxAttempts, f.Timeout = 4, time.Hour
	}, func(t *testing.T, w *world) {
		w.settle()
		key := w.keyOf("s1")
		w.read(0, key)
		w.rule("stall", "primary.freeze", nil)
		if err := w.Restart(t.Context(), "s1-1"); err != nil {
			t.Fatal(err)
		}
		r := w.fleet.Read(t.Context(), 0, key)
		if e := r.Event; e.Outcome != targets.Refused || e.Code != targets.CodeRetriesExhausted || e.HopCount != 4 || len(e.Hops) != 4 || len(r.Refusals) != 4 {
			t.Errorf("%+v", e)
		}
		if e := w.fleet.Read(t.Context(), 0, "").Event; e.Code != "INVALID" || e.HopCount != 1 {
			t.Errorf("a key that cannot be: %+v; want no retry", e)
		}
	})
}
