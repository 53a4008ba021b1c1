package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// book records what the VUs of a test were asked to do.
type book struct {
	mu      sync.Mutex
	started []Iteration
	ended   atomic.Int64
	dropped atomic.Uint64
}

func (b *book) numbers() []uint64 {
	var all []uint64
	for _, it := range b.started {
		all = append(all, it.InScenario)
	}
	slices.Sort(all)
	return all
}

// sleeper is a VU whose iterations take as long as takes says.
type sleeper struct {
	book  *book
	takes func(Iteration) time.Duration
	busy  atomic.Bool
}

var _ VU = (*sleeper)(nil)

func (v *sleeper) Iterate(ctx context.Context, it Iteration) error {
	if v.busy.Swap(true) {
		panic("two iterations at once on one VU")
	}
	defer v.busy.Store(false)
	v.book.mu.Lock()
	v.book.started = append(v.book.started, it)
	v.book.mu.Unlock()
	if !sleepUntil(ctx, time.Now().Add(v.takes(it))) {
		return fmt.Errorf("sleep: %w", ErrInterrupted)
	}
	v.book.ended.Add(1)
	return nil
}

func takes(d time.Duration) func(Iteration) time.Duration {
	return func(Iteration) time.Duration { return d }
}

// play runs scenarios in a bubble and returns what happened and how long it
// took.
func play(t *testing.T, ctx context.Context, length func(Iteration) time.Duration, scenarios ...Scenario) (*book, Snapshot, time.Duration) {
	t.Helper()
	b := &book{}
	newVU := func() VU { return &sleeper{book: b, takes: length} }
	ready, _ := VUs(scenarios)
	cfg := Config{Scenarios: scenarios, Dropped: func(_ string, n uint64) { b.dropped.Add(n) },
		NewVU: func(context.Context) (VU, error) { return newVU(), nil }}
	for range ready {
		cfg.VUs = append(cfg.VUs, newVU())
	}
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	r.Run(ctx)
	return b, r.Snapshot(), time.Since(start)
}

const (
	s  = time.Second
	ms = time.Millisecond
)

func TestExecutors(t *testing.T) {
	scenario := func(grace time.Duration, e Executor) Scenario {
		return Scenario{Name: "s", Executor: e, GracefulStop: grace}
	}
	for _, c := range []struct {
		name                            string
		scenario                        Scenario
		length                          time.Duration
		completed, interrupted, dropped uint64
		takes                           time.Duration
	}{
		{"constant VUs loop", scenario(s, ConstantVUs{3, 10 * s}), 300 * ms, 3 * 34, 0, 0, 10*s + 200*ms},
		{"graceful stop cuts", scenario(100*ms, ConstantVUs{2, s}), 400 * ms, 4, 2, 0, s + 100*ms},
		{"no grace at all", scenario(0, ConstantVUs{2, s}), 10 * s, 0, 2, 0, s},
		{"shared iterations", scenario(s, SharedIterations{4, 11, 60 * s}), s, 11, 0, 0, 3 * s},
		{"shared iterations are dropped at the limit", scenario(s, SharedIterations{2, 10, 2 * s}), 900 * ms, 6, 0, 4, 2700 * ms},
		{"iterations per VU", scenario(s, PerVUIterations{3, 4, 60 * s}), s, 12, 0, 0, 4 * s},
		{"iterations per VU are dropped at the limit", scenario(0, PerVUIterations{3, 4, 2500 * ms}), s, 6, 3, 3, 2500 * ms},
		{"arrivals", scenario(s, ConstantArrivalRate{20, s, 2 * s, 3, 3}), 10 * ms, 40, 0, 0, 2 * s},
		{"arrivals drop when no VU is free", scenario(2*s, ConstantArrivalRate{20, s, s, 1, 1}), 620 * ms, 2, 0, 18, 1270 * ms},
		{"arrivals per minute", scenario(s, ConstantArrivalRate{600, time.Minute, s, 2, 2}), 0, 10, 0, 0, s},
		{"more VUs are made when one is missed", scenario(5*s, ConstantArrivalRate{10, s, s, 1, 8}), 5 * s, 5, 0, 5, 5*s + 800*ms},
		{"arrivals on a ramp", scenario(s, RampingArrivalRate{0, s, []Stage{{s, 40}}, 4, 4}), 0, 20, 0, 0, s},
		{"a ramp of VUs", scenario(s, RampingVUs{0, []Stage{{0, 3}, {600 * ms, 3}}, 0}), 110 * ms, 18, 0, 0, 660 * ms},
		{"a ramp down lets iterations end", scenario(3*s, RampingVUs{2, []Stage{{100 * ms, 2}, {0, 0}, {200 * ms, 0}}, 3 * s}), 800 * ms, 2, 0, 0, 800 * ms},
		{"a ramp down cuts after its grace", scenario(9*s, RampingVUs{2, []Stage{{s, 2}, {0, 1}, {3 * s, 1}}, 500 * ms}), 1900 * ms, 3, 1, 0, 5700 * ms},
		{"a VU that is wanted again goes on", scenario(9*s, RampingVUs{1, []Stage{{s, 1}, {0, 0}, {s, 0}, {0, 1}, {2 * s, 1}}, 5 * s}), 3 * s, 2, 0, 0, 6 * s},
		{"a VU that was cut starts again", scenario(9*s, RampingVUs{1, []Stage{{s, 1}, {0, 0}, {s, 0}, {0, 1}, {s, 1}}, 0}), 3 * s, 1, 1, 0, 5 * s},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, snap, took := play(t, t.Context(), takes(c.length), c.scenario)
				if snap.Completed != c.completed || snap.Interrupted != c.interrupted || snap.Dropped != c.dropped {
					t.Errorf("completed %d, interrupted %d, dropped %d; want %d, %d, %d",
						snap.Completed, snap.Interrupted, snap.Dropped, c.completed, c.interrupted, c.dropped)
				}
				if b.dropped.Load() != snap.Dropped || uint64(b.ended.Load()) != snap.Completed {
					t.Errorf("the callbacks saw %d dropped and %d ended", b.dropped.Load(), b.ended.Load())
				}
				if took != c.takes {
					t.Errorf("took %v, want %v", took, c.takes)
				}
				for i, n := range b.numbers() {
					if n != uint64(i) {
						t.Fatalf("the numbers of the iterations have a hole at %d: %v", i, b.numbers())
					}
				}
				if snap.Active != 0 || !snap.Scenarios[0].Ended || snap.Scenarios[0].Progress != 1 {
					t.Errorf("after the end: %+v", snap)
				}
			})
		})
	}
}

func TestArrivalsSayHowLateTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _, _ := play(t, t.Context(), takes(0), Scenario{Name: "s", StartTime: 3 * s, Executor: ConstantArrivalRate{10, s, s, 2, 2}})
		for i, it := range b.started {
			want := 3*s + time.Duration(i)*100*ms
			if !it.Paced || it.Scheduled != want || it.Late() < 0 {
				t.Errorf("iteration %d was due at %v and %v late, want due at %v", i, it.Scheduled, it.Late(), want)
			}
		}
	})
	late := Iteration{Paced: true, Scheduled: s, Started: 3 * s}
	if late.Late() != 2*s {
		t.Errorf("late by %v, want 2s", late.Late())
	}
}

func TestScenariosShareVUsWhenTheyDoNotOverlap(t *testing.T) {
	first := Scenario{Name: "a", Executor: ConstantVUs{2, s}}
	for _, c := range []struct {
		start time.Duration
		want  int
	}{{s, 3}, {500 * ms, 5}} {
		second := Scenario{Name: "b", StartTime: c.start, Executor: SharedIterations{3, 3, s}}
		if ready, most := VUs([]Scenario{first, second}); ready != c.want || most != c.want {
			t.Errorf("a start after %v needs %d of %d VUs, want %d", c.start, ready, most, c.want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		second := Scenario{Name: "b", StartTime: s, Executor: SharedIterations{3, 3, s}}
		_, snap, took := play(t, t.Context(), takes(300*ms), first, second)
		if snap.Completed != 6+3 || snap.Interrupted != 2 || took != s+300*ms {
			t.Errorf("%+v after %v", snap, took)
		}
	})
}

func TestCancellingInterrupts(t *testing.T) {
	for _, e := range []Executor{ConstantVUs{2, 10 * s}, SharedIterations{2, 20, 60 * s}, PerVUIterations{2, 20, 60 * s},
		RampingVUs{2, []Stage{{10 * s, 2}}, s}, ConstantArrivalRate{10, s, 10 * s, 2, 8}, RampingArrivalRate{10, s, []Stage{{10 * s, 10}}, 2, 2}} {
		t.Run(e.Name(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 3500*ms)
				defer cancel()
				_, snap, took := play(t, ctx, takes(2*s), Scenario{Name: "s", Executor: e, GracefulStop: 30 * s})
				if took != 3500*ms || snap.Interrupted < 2 || snap.Active != 0 {
					t.Errorf("after %v: %+v", took, snap)
				}
			})
		})
	}
}

func TestCancellingBeforeTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), s)
		defer cancel()
		_, snap, took := play(t, ctx, takes(0), Scenario{Name: "s", StartTime: time.Hour, Executor: ConstantVUs{1, s}})
		if took != s || snap.Completed != 0 {
			t.Errorf("after %v: %+v", took, snap)
		}
	})
}

func TestFailedIterationsAreComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := New(Config{Scenarios: []Scenario{{Name: "s", Executor: SharedIterations{1, 3, s}}}, VUs: []VU{failing{}}})
		if err != nil {
			t.Fatal(err)
		}
		r.Run(t.Context())
		if snap := r.Snapshot(); snap.Completed != 3 || snap.Failed != 3 {
			t.Errorf("%+v, want 3 completed, all failed", snap)
		}
	})
}

type failing struct{}

var _ VU = failing{}

func (failing) Iterate(context.Context, Iteration) error { return errors.New("no") }

func TestValidation(t *testing.T) {
	for name, e := range map[string]Executor{
		"vus": ConstantVUs{0, s}, "duration": ConstantVUs{1, 900 * ms}, "iterations": SharedIterations{5, 2, s},
		"maxDuration": PerVUIterations{1, 1, 0}, "rate": ConstantArrivalRate{0, s, s, 1, 1}, "timeUnit": ConstantArrivalRate{1, 0, s, 1, 1},
		"preAllocatedVUs": ConstantArrivalRate{1, s, s, 0, 1}, "maxVUs": ConstantArrivalRate{1, s, s, 5, 2},
		"stages": RampingVUs{0, nil, 0}, "stages[0].target": RampingVUs{1, []Stage{{s, -1}}, 0},
		"stages[0].duration": RampingArrivalRate{1, s, []Stage{{-1, 1}}, 1, 1},
		"gracefulRampDown":   RampingVUs{1, []Stage{{s, 1}}, -1}, "startVUs": RampingVUs{-1, []Stage{{s, 1}}, 0},
	} {
		_, err := New(Config{Scenarios: []Scenario{{Name: "odd", Executor: e}}, VUs: make([]VU, 5)})
		if want := fmt.Sprintf("scenario %q: %s:", "odd", name); err == nil || len(err.Error()) < len(want) || err.Error()[:len(want)] != want {
			t.Errorf("%T: %v, want %s …", e, err, want)
		}
	}
	if err := (Scenario{StartTime: -1, Executor: ConstantVUs{1, s}}).Validate(); err == nil {
		t.Error("a negative start time is accepted")
	}
}

func BenchmarkIterations(b *testing.B) {
	r, err := New(Config{Scenarios: []Scenario{{Name: "s", Executor: SharedIterations{1, int64(max(1, b.N)), time.Hour}}}, VUs: []VU{empty{}}})
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	r.Run(b.Context())
}

type empty struct{}

var _ VU = empty{}

func (empty) Iterate(context.Context, Iteration) error { return nil }
