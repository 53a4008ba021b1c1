package fleet_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference"
	"github.com/metachaos/metachaos/xk6-metacache/fleet"
)

// inObject counts the loaded documents of a key's object.
func (w *world) inObject(key string) int {
	w.t.Helper()
	r := w.Do(w.t.Context(), targets.Op{Verb: targets.VerbScan, Node: targets.NodeID(w.entry(key).Owner + "-0"), Concern: targets.ConcernAvailable})
	n := 0
	for _, d := range r.Documents {
		if w.Place(d.ID) == w.Place(key) {
			n++
		}
	}
	return n
}

// A range moves, stage by stage. Scans that carry epochs to nodes that filter
// return each document once; those without one of the two see the orphans.
func TestScansDuringAMigration(t *testing.T) {
	yes, no := true, false
	for name, c := range map[string]struct {
		filter  *bool
		change  func(*fleet.Config)
		orphans bool
	}{
		"epochs and filter":               {&yes, func(*fleet.Config) {}, false},
		"no filter":                       {&no, func(*fleet.Config) {}, true},
		"available":                       {&yes, func(f *fleet.Config) { f.Concern = targets.ConcernAvailable }, true},
		"neither":                         {&no, func(f *fleet.Config) { f.Policy.Epochs = false }, true},
		"epochs and filter, no pushes":    {&yes, func(f *fleet.Config) { f.Policy.Push = false }, false},
		"epochs and filter, no redirects": {&yes, func(f *fleet.Config) { f.Policy.Push, f.Policy.MaxRedirects = false, 0 }, false},
		"epochs and filter, secondaries":  {&yes, func(f *fleet.Config) { f.Preference = targets.PreferSecondary }, false},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, reference.Config{Filter: c.filter}, func(f *fleet.Config) {
				f.Preference = targets.PreferPrimary
				c.change(f)
			}, func(t *testing.T, w *world) {
				w.settle()
				key := w.keyOf("s1")
				moving := w.inObject(key)
				if moving == 0 {
					t.Fatal("nothing moves")
				}
				for _, stage := range []targets.Stage{"", targets.StageCopied, targets.StageHandedOver, targets.StageCleaned} {
					if stage != "" {
						w.migrate(key, "s2", stage)
					}
					want := 0
					if c.orphans && (stage == targets.StageCopied || stage == targets.StageHandedOver) {
						want = moving
					}
					e := w.done(w.fleet.Scan(t.Context(), 0)).Event
					if e.Duplicates != want || e.Missing != 0 || e.Documents != 40+want || e.Node != "" || e.Code != "" {
						t.Errorf("%q: %+v, want %d duplicates", stage, e, want)
					}
					time.Sleep(time.Second) // for the secondaries to follow
				}
			})
		})
	}
}

// A client that has heard of nothing asks by its old epochs. Some node refuses
// them, the client pulls once, and asks all shards anew.
func TestAScanRefreshesOnMismatch(t *testing.T) {
	for _, refresh := range []bool{true, false} {
		live(t, reference.Config{}, func(f *fleet.Config) { withoutPushes(f); f.Policy.RefreshOnMismatch = refresh }, func(t *testing.T, w *world) {
			w.settle()
			w.rule("deaf", "push.drop", nil)
			key := w.keyOf("s1")
			w.done(w.fleet.Scan(t.Context(), 0))
			w.migrate(key, "s2", targets.StageCleaned)
			r := w.fleet.Scan(t.Context(), 0)
			pulls := len(w.of(targets.EventPull, targets.CauseMismatch))
			if !slices.Contains(r.Refusals, targets.CodeStaleEpoch) || r.Redirects != 0 || r.Loop {
				t.Errorf("refresh %v: %+v", refresh, r)
			}
			if e := r.Event; refresh && (e.Outcome != targets.Done || e.Missing != 0 || e.HopCount < 4 || e.HopCount%2 != 0 || pulls != 1) {
				t.Errorf("with refresh: %+v after %d pulls", e, pulls)
			}
			// It never learns, and must not end at the redirect limit nor spin.
			if e := r.Event; !refresh && (e.Code != targets.CodeRetriesExhausted && e.Code != targets.CodeTimeout || e.End == e.Start ||
				e.Shard != "s1" || e.Node != "s1-0" || e.Documents != 0 || len(r.Documents) != 0 || pulls != 0) {
				t.Errorf("without refresh: %+v after %d pulls", e, pulls)
			}
		})
	}
}

// Epochs that have expired are pulled before a scan, or used as the last known
// ones. A scan that knows only some would go unchecked in part: it is refused.
func TestAScanNeedsItsEpochs(t *testing.T) {
	live(t, reference.Config{}, func(f *fleet.Config) { f.Policy.TTL = 10 * time.Second }, func(t *testing.T, w *world) {
		w.settle()
		w.impede(down)
		if e := w.fleet.Scan(t.Context(), 0).Event; e.Outcome != targets.Refused || e.Code != targets.CodeControlDown || e.HopCount != 0 {
			t.Errorf("a cold cache and no control plane: %+v", e)
		}
		w.impede(nil)
		w.read(0, "item-1") // one object is cached
		w.done(w.fleet.Scan(t.Context(), 0))
		w.done(w.fleet.Scan(t.Context(), 0))
		causes := func() map[targets.Cause]int {
			out := map[targets.Cause]int{}
			for _, e := range w.of(targets.EventPull, "") {
				out[e.Cause]++
			}
			return out
		}
		if got, want := causes(), (map[targets.Cause]int{targets.CauseCold: 3}); !maps.Equal(got, want) {
			t.Errorf("pulls %v, want %v", got, want)
		}
		time.Sleep(15 * time.Second)
		w.done(w.fleet.Scan(t.Context(), 0))
		w.impede(down)
		time.Sleep(15 * time.Second)
		w.done(w.fleet.Scan(t.Context(), 0)) // last-known-good
		if got, want := causes(), (map[targets.Cause]int{targets.CauseCold: 3, targets.CauseTTL: 2}); !maps.Equal(got, want) {
			t.Errorf("pulls %v, want %v", got, want)
		}
	})
}

func TestAScanOfAnUnreachableShard(t *testing.T) {
	live(t, reference.Config{Replicas: 1}, func(f *fleet.Config) { f.Policy.MaxAttempts = 3 }, func(t *testing.T, w *world) {
		w.settle()
		w.done(w.fleet.Scan(t.Context(), 0))
		if err := w.Memory.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		r := w.fleet.Scan(t.Context(), 0)
		if e := r.Event; e.Outcome != targets.Refused || e.Code != targets.CodeRetriesExhausted || e.HopCount != 6 || len(r.Refusals) != 6 || r.Documents != nil {
			t.Errorf("%+v", r)
		}
	})
}
