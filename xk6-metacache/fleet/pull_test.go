package fleet_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference"
	"github.com/metachaos/metachaos/xk6-metacache/fleet"
)

const crowd = 20

func TestSingleflight(t *testing.T) {
	for _, c := range []struct {
		on           bool
		grants, lead int
	}{{true, 1, 1}, {false, crowd, crowd}} {
		live(t, reference.Config{PullDelay: 100 * time.Millisecond}, func(f *fleet.Config) {
			f.Clients, f.Policy.Singleflight = crowd, c.on
		}, func(t *testing.T, w *world) {
			w.settle()
			key := w.keyOf("s1")
			var all sync.WaitGroup
			for i := range crowd {
				all.Go(func() { w.done(w.fleet.Read(t.Context(), i, key)) })
			}
			all.Wait()
			if grants := w.grants(targets.CauseCold); len(grants) != c.grants {
				t.Errorf("singleflight %v: %d grants, want %d", c.on, len(grants), c.grants)
			}
			lead, applied := 0, 0
			for _, e := range w.of(targets.EventPull, targets.CauseCold) {
				if !e.Shared {
					lead++
				}
				applied += e.Applied
				if e.End-e.Start != 100*time.Millisecond || e.Served != 1 {
					t.Errorf("a pull: %+v", e)
				}
			}
			if lead != c.lead || applied != crowd {
				t.Errorf("singleflight %v: %d pulls began a call, want %d; %d were news", c.on, lead, c.lead, applied)
			}
			for i := range crowd { // and all caches are filled by it
				if r := w.read(i, key); r.Event.Cache != targets.CacheHit {
					t.Errorf("client %d: %s", i, r.Event.Cache)
				}
			}
		})
	}
}

// The client whose pull began the call gives up; those who wait for the call
// are served all the same (no poisoned singleflight).
func TestACancelledLeaderFailsNobodyElse(t *testing.T) {
	live(t, reference.Config{PullDelay: 300 * time.Millisecond}, func(f *fleet.Config) { f.Clients = 3 }, func(t *testing.T, w *world) {
		w.settle()
		key := w.keyOf("s1")
		impatient, cancel := context.WithCancelCause(t.Context())
		results := make([]fleet.Result, 3)
		var all sync.WaitGroup
		for i, ctx := range []context.Context{impatient, t.Context(), t.Context()} {
			all.Go(func() { results[i] = w.fleet.Read(ctx, i, key) })
			synctest.Wait() // the impatient one is the first
		}
		time.Sleep(100 * time.Millisecond)
		cancel(errors.New("gone"))
		all.Wait()
		if e := results[0].Event; e.Outcome != targets.Refused || e.End-e.Start != 100*time.Millisecond || e.HopCount != 0 {
			t.Errorf("the leader: %+v", e)
		}
		for _, r := range results[1:] {
			w.done(r)
		}
		pulls := w.of(targets.EventPull, targets.CauseCold)
		if len(pulls) != 3 || pulls[0].Shared || pulls[0].Client != "c-0" || !pulls[1].Shared || !pulls[2].Shared {
			t.Errorf("pulls: %+v", pulls)
		}
		if grants := w.grants(targets.CauseCold); len(grants) != 1 || grants[0].To != "c-0" {
			t.Errorf("grants: %+v", grants)
		}
	})
}

// A failed call is one for all who wait for it, and the next one is made anew.
func TestAFailedCallIsNotKept(t *testing.T) {
	live(t, reference.Config{}, nil, func(t *testing.T, w *world) {
		w.settle()
		key := w.keyOf("s1")
		w.impede(down)
		if e := w.fleet.Read(t.Context(), 0, key).Event; e.Code != targets.CodeControlDown {
			t.Errorf("while it is down: %+v", e)
		}
		w.impede(nil)
		w.read(0, key)
	})
}

func TestPeriodicPullsAreSpreadOverThePeriod(t *testing.T) {
	live(t, reference.Config{PullDelay: 2 * time.Second}, func(f *fleet.Config) {
		f.Clients, f.PullTimeout = 10, 5*time.Second
		f.Policy.PeriodicPull, f.Policy.Singleflight = 10*time.Second, false
	}, func(t *testing.T, w *world) {
		start := w.base.Now()
		time.Sleep(32*time.Second + time.Millisecond)
		pulls := w.of(targets.EventPull, targets.CausePeriodic)
		if len(pulls) != 30 {
			t.Fatalf("%d pulls in three periods of 10 clients", len(pulls))
		}
		of := map[string]int{}
		for i, e := range pulls {
			of[e.Client]++
			// One a second, though each takes two.
			if at := e.Start - start; at != time.Duration(i+1)*time.Second || e.Outcome != targets.Done || e.Object != (targets.Object{}) {
				t.Errorf("pull %d at %s: %+v", i, at, e)
			}
		}
		if len(of) != 10 || of["c-0"] != 3 {
			t.Errorf("pulls by client: %v", of)
		}
		w.settle()
		if r := w.read(0, w.keyOf("s1")); r.Event.Cache != targets.CacheHit {
			t.Errorf("after the pulls: %s", r.Event.Cache)
		}
	})
}

// A stale client without any other protection is set right by its next pull.
func TestPeriodicPullRepairs(t *testing.T) {
	live(t, reference.Config{}, func(f *fleet.Config) {
		f.Policy.PeriodicPull, f.Policy.Epochs, f.Policy.Push = 10*time.Second, false, false
		f.Policy.TTL = time.Hour
	}, func(t *testing.T, w *world) {
		w.settle()
		key := w.keyOf("s1")
		w.read(0, key)
		w.migrate(key, "s2", targets.StageCleaned)
		if r := w.read(0, key); r.Event.Shard != "s1" {
			t.Errorf("before the pull: %+v", r.Event)
		}
		time.Sleep(10 * time.Second)
		w.settle()
		if r := w.read(0, key); r.Event.Shard != "s2" || r.Held != 2 {
			t.Errorf("after the pull: %+v", r.Event)
		}
	})
}
