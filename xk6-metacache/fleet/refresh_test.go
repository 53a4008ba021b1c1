package fleet_test

import (
	"slices"
	"testing"
	"time"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference"
	"github.com/metachaos/metachaos/xk6-metacache/fleet"
)

const ttl = 100 * time.Second

// busy is a fleet whose clients pull what expires, whether or not anybody
// reads.
func busy(jitter float64) func(*fleet.Config) {
	return func(f *fleet.Config) {
		f.Clients, f.Refresh, f.Streams = 200, fleet.RefreshBackground, 1
		f.Policy.TTL, f.Policy.Jitter, f.Policy.Singleflight = ttl, jitter, false
	}
}

// starts are when the pulls began, after an instant.
func starts(pulls []targets.Event, since time.Duration) []time.Duration {
	var out []time.Duration
	for _, e := range pulls {
		if e.Start >= since {
			out = append(out, e.Start-since)
		}
	}
	slices.Sort(out)
	return out
}

// All clients are told one deadline. Without jitter all pulls come in one
// instant; with it they are spread over twice its share of the TTL.
func TestTheCliff(t *testing.T) {
	for _, jitter := range []float64{0, 0.1, 0.3} {
		live(t, reference.Config{Objects: 1}, func(f *fleet.Config) { busy(jitter)(f); f.Warm = true }, func(t *testing.T, w *world) {
			told := w.base.Now()
			w.rule("cliff", "ttl.synchronize", map[string]string{"in": "2s"})
			time.Sleep(65 * time.Second)
			spread := time.Duration(2 * jitter * float64(ttl))
			at := starts(w.of(targets.EventPull, targets.CauseTTL), told)
			if len(at) < 200 {
				t.Fatalf("jitter %g: %d pulls of 200 clients", jitter, len(at))
			}
			at = at[:200] // with the shortest lives, some come again
			first, last := at[0]-2*time.Second, at[199]-2*time.Second
			if jitter == 0 && (first != 0 || last != 0) {
				t.Errorf("without jitter: pulls from %s to %s, want one instant", first, last)
			}
			if first < 0 || last > spread || last-first < spread*9/10 {
				t.Errorf("jitter %g: pulls from %s to %s, want them to fill 0s to %s", jitter, first, last, spread)
			}
			half, _ := slices.BinarySearch(at, 2*time.Second+spread/2)
			if jitter > 0 && (half < 70 || half > 130) { // 100 ± 4 standard deviations
				t.Errorf("jitter %g: %d of 200 in the first half", jitter, half)
			}
			if pushes := w.of(targets.EventPush, ""); len(pushes) != 1 || pushes[0].Applied != 0 {
				t.Errorf("pushes: %+v", pushes)
			}
		})
	}
}

// Without jitter, what was pulled in one instant expires in one instant, for
// ever. With it, the second wave fills TTL·(1 ± jitter).
func TestExpiriesOfOnePull(t *testing.T) {
	for _, jitter := range []float64{0, 0.2} {
		live(t, reference.Config{Objects: 1}, busy(jitter), func(t *testing.T, w *world) {
			w.settle()
			began := w.base.Now()
			for i := range 200 {
				w.read(i, "item-1")
			}
			time.Sleep(ttl * 13 / 10)
			at := starts(w.of(targets.EventPull, targets.CauseTTL), began)
			low, high := time.Duration((1-jitter)*float64(ttl)), time.Duration((1+jitter)*float64(ttl))
			if len(at) != 200 || at[0] < low || at[199] > high || at[199]-at[0] < (high-low)*9/10 {
				t.Errorf("jitter %g: %d pulls from %s to %s, want 200 that fill %s to %s", jitter, len(at), at[0], at[len(at)-1], low, high)
			}
			if r := w.read(0, "item-1"); r.Event.Cache != targets.CacheHit {
				t.Errorf("jitter %g: after the refresh the cache says %s", jitter, r.Event.Cache)
			}
		})
	}
}

// A warm fleet looks as if it had run for long: no herd at its start.
func TestWarmFleetsExpireEvenly(t *testing.T) {
	for _, jitter := range []float64{0, 0.2, 1} {
		live(t, reference.Config{Objects: 1}, func(f *fleet.Config) { busy(jitter)(f); f.Warm = true }, func(t *testing.T, w *world) {
			w.settle()
			began := w.base.Now()
			if r := w.read(0, "item-1"); r.Event.Cache != targets.CacheHit {
				t.Errorf("jitter %g: the first read finds a %s", jitter, r.Event.Cache)
			}
			time.Sleep(ttl)
			at := starts(w.of(targets.EventPull, targets.CauseTTL), began)
			for tenth := range 10 {
				from, _ := slices.BinarySearch(at, time.Duration(tenth)*ttl/10)
				to, _ := slices.BinarySearch(at, time.Duration(tenth+1)*ttl/10)
				if n := to - from; n < 5 || n > 38 || jitter == 0 && n != 20 { // 20 ± 4 standard deviations of a Poisson process
					t.Errorf("jitter %g: %d pulls in tenth %d, want about 20", jitter, n, tenth+1)
				}
			}
			if grants := w.grants(targets.CauseCold); len(grants) != 1 || grants[0].To != "c" {
				t.Errorf("jitter %g: the caches were warmed by %+v, want one pull", jitter, grants)
			}
		})
	}
}

// On demand, nothing is pulled until somebody needs it.
func TestOnDemandNobodyPullsWhatNobodyReads(t *testing.T) {
	live(t, reference.Config{Objects: 1}, func(f *fleet.Config) { busy(0)(f); f.Refresh, f.Warm = fleet.RefreshDemand, true }, func(t *testing.T, w *world) {
		w.settle()
		w.rule("cliff", "ttl.synchronize", map[string]string{"in": "2s"})
		time.Sleep(3 * ttl)
		if pulls := w.of(targets.EventPull, ""); len(pulls) > 0 {
			t.Errorf("%d pulls, the first %+v", len(pulls), pulls[0])
		}
		if r := w.read(0, "item-1"); r.Event.Cache != targets.CacheExpired || len(w.grants(targets.CauseTTL)) != 1 {
			t.Errorf("the read found a %s", r.Event.Cache)
		}
	})
}

// An entry that was renewed meanwhile is left alone by its old alarm, and a
// failed refresh is tried again soon.
func TestBackgroundRefreshFollowsTheEntry(t *testing.T) {
	live(t, reference.Config{Objects: 1}, func(f *fleet.Config) { busy(0)(f); f.Clients = 1 }, func(t *testing.T, w *world) {
		w.settle()
		began := w.base.Now()
		w.read(0, "item-1")
		time.Sleep(ttl / 2)
		w.rule("now", "ttl.synchronize", map[string]string{"in": "1s"}) // renewed at 51 s
		time.Sleep(ttl * 3 / 4)
		w.impede(down) // at 125 s
		time.Sleep(ttl + 250*time.Millisecond)
		w.impede(nil) // at 225.25 s
		time.Sleep(time.Second)
		at := starts(w.of(targets.EventPull, targets.CauseTTL), began)
		// At 51 s, then from 151 s on every half second until it succeeds.
		if len(at) != 1+150 || at[0] != 51*time.Second || at[1] != 151*time.Second || at[2] != 151500*time.Millisecond || at[150] != 225500*time.Millisecond {
			t.Errorf("%d pulls: %v …", len(at), at[:min(4, len(at))])
		}
	})
}
