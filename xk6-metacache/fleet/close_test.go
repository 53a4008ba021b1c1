package fleet_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference"
	"github.com/metachaos/metachaos/xk6-metacache/fleet"
)

// Close waits for nothing that it can end. A goroutine that was left would
// keep the bubble of the test from ending.
func TestCloseEndsPullsUnderWay(t *testing.T) {
	for _, singleflight := range []bool{true, false} {
		live(t, reference.Config{Objects: 1}, func(f *fleet.Config) {
			busy(0)(f)
			f.Clients, f.PullTimeout, f.Timeout, f.Policy.Singleflight = 3, time.Hour, time.Second, singleflight
			f.Policy.PeriodicPull = 10 * time.Second
		}, func(t *testing.T, w *world) {
			w.settle()
			for i := range 3 {
				w.read(i, "item-1")
			}
			w.impede(hang)
			time.Sleep(2 * ttl)
			before := w.base.Now()
			if err := w.fleet.Close(); err != nil {
				t.Error(err)
			}
			if took := w.base.Now() - before; took != 0 {
				t.Errorf("closing took %s", took)
			}
			if err := w.fleet.Close(); err != nil {
				t.Errorf("closed twice: %v", err)
			}
			began := w.base.Now()
			e := w.fleet.Read(t.Context(), 0, "item-1").Event
			if singleflight && (e.Outcome != targets.Done || e.Cache != targets.CacheExpired || w.base.Now() != began) {
				t.Errorf("a read after Close: %+v; want the last known entry at once", e)
			}
		})
	}
}

// Everything at once, for the race detector: what comes out is consistent.
func TestManyAtOnce(t *testing.T) {
	live(t, reference.Config{PullDelay: 3 * time.Millisecond, PushHeartbeat: 20 * time.Millisecond}, func(f *fleet.Config) {
		f.Clients, f.Refresh, f.Warm, f.Streams = 5, fleet.RefreshBackground, true, 2
		// A secondary that has not heard of a move serves on after the documents
		// are gone: what it returns is not consistent.
		f.Preference = targets.PreferPrimary
		f.Policy.TTL, f.Policy.PeriodicPull = 50*time.Millisecond, 70*time.Millisecond
	}, func(t *testing.T, w *world) {
		w.rule("lossy", "push.drop", map[string]string{"share": "0.5"})
		var all sync.WaitGroup
		for worker := range 12 {
			all.Go(func() {
				for n := range 40 {
					i := w.fleet.Next()
					switch key := fmt.Sprintf("item-%d", (worker*40+n)%40); n % 4 {
					case 0:
						w.fleet.Write(t.Context(), i, key, []byte(key))
					case 1:
						if e := w.fleet.Scan(t.Context(), i).Event; e.Outcome == targets.Done && (e.Duplicates > 0 || e.Missing > 0) {
							t.Errorf("a scan: %+v", e)
						}
					default:
						r := w.fleet.Read(t.Context(), i, key)
						if e := r.Event; e.Outcome == targets.Done && (len(r.Documents) != 1 || e.Served != e.Sent || e.Served == 0) {
							t.Errorf("a read: %+v with %d documents", e, len(r.Documents))
						}
					}
					time.Sleep(time.Millisecond)
				}
			})
		}
		all.Go(func() {
			for _, to := range []string{"s2", "s1", "s2"} {
				w.migrate("item-1", to, targets.StageCleaned)
				time.Sleep(20 * time.Millisecond)
			}
		})
		all.Wait()
		done := 0
		for _, e := range w.of(targets.EventRead, "") {
			if e.Outcome == targets.Done {
				done++
			}
		}
		if total := len(w.of(targets.EventRead, "")); total != 240 || done < 235 {
			t.Errorf("%d of %d reads done, want nearly all of 240", done, total)
		}
	})
}
