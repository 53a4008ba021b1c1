package fleet_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference"
	"github.com/metachaos/metachaos/xk6-metacache/fleet"
)

// hearing is a fleet that learns from pushes alone.
func hearing(f *fleet.Config) {
	f.Clients, f.Streams = 4, 2
	f.Policy.TTL, f.Policy.RefreshOnMismatch, f.Policy.Singleflight = time.Hour, false, false
	f.Preference = targets.PreferPrimary
}

func TestPushesAreApplied(t *testing.T) {
	live(t, reference.Config{}, hearing, func(t *testing.T, w *world) {
		w.settle()
		key := w.keyOf("s1")
		for i := range 3 { // the fourth client caches nothing
			w.read(i, key)
		}
		w.migrate(key, "s2", targets.StageCleaned)
		time.Sleep(time.Second)
		w.settle()
		pushes := w.of(targets.EventPush, "")
		if len(pushes) != 2 {
			t.Fatalf("pushes: %+v", pushes)
		}
		applied := 0
		for _, e := range pushes {
			applied += e.Applied
			if e.Object != w.Place(key) || e.Served != 2 || e.Outcome != targets.Done || e.Seq < 2 || (e.Client != "c-stream-0" && e.Client != "c-stream-1") {
				t.Errorf("a push: %+v", e)
			}
		}
		if applied != 3 {
			t.Errorf("news to %d clients, want 3", applied)
		}
		for i := range 3 {
			if r := w.read(i, key); r.Held != 2 || r.Redirects != 0 || r.Event.Cache != targets.CacheHit {
				t.Errorf("client %d: %+v", i, r)
			}
		}
		if pulls := w.of(targets.EventPull, targets.CauseGap); len(pulls) > 0 {
			t.Errorf("pulls: %+v", pulls)
		}
	})
}

// A push that comes while an operation waits for its next attempt counts: the
// write goes to the new owner without being refused by the old one.
func TestARetryHeedsPushes(t *testing.T) {
	live(t, reference.Config{}, hearing, func(t *testing.T, w *world) {
		w.settle()
		key := w.keyOf("s1")
		w.done(w.fleet.Write(t.Context(), 0, key, []byte("before")))
		w.migrate(key, "s2", targets.StageCopied) // the object's writes are held
		written := make(chan fleet.Result)
		go func() { written <- w.fleet.Write(t.Context(), 0, key, []byte("during")) }()
		synctest.Wait()
		w.migrate(key, "s2", targets.StageHandedOver)
		r := w.done(<-written)
		if r.Refusals[0] != targets.CodeMigrating || slices.Contains(r.Refusals, targets.CodeStaleEpoch) || r.Event.Shard != "s2" || r.Event.Version != 3 {
			t.Errorf("%+v", r)
		}
	})
}

// A push is lost and nothing else happens: the next heartbeat shows the hole.
func TestAHeartbeatRevealsALostPush(t *testing.T) {
	for _, gapPull := range []bool{true, false} {
		live(t, reference.Config{PushHeartbeat: time.Second}, func(f *fleet.Config) { hearing(f); f.Policy.GapPull = gapPull },
			func(t *testing.T, w *world) {
				w.settle()
				w.rule("one", "push.drop", map[string]string{"client": "c-stream-0"})
				key := w.keyOf("s1")
				for i := range 3 {
					w.read(i, key)
				}
				before := w.base.Now()
				w.migrate(key, "s2", targets.StageCleaned)
				time.Sleep(3 * time.Second)
				want := 0
				if gapPull {
					want = 2 // clients 0 and 2 hear stream 0
				}
				pulls := w.of(targets.EventPull, targets.CauseGap)
				if len(pulls) != want {
					t.Fatalf("gap pull %v: %d pulls, want %d: %+v", gapPull, len(pulls), want, pulls)
				}
				for _, e := range pulls {
					if e.Start-before > time.Second || e.Applied == 0 || e.Client != "c-0" && e.Client != "c-2" {
						t.Errorf("a pull: %+v", e)
					}
				}
				if r := w.fleet.Read(t.Context(), 0, key); (r.Held == 2) != gapPull {
					t.Errorf("gap pull %v: client 0 holds epoch %d", gapPull, r.Held)
				}
			})
	}
}

// The pull that is to close the gap fails: it is made again with the next
// heartbeat, until it succeeds.
func TestAFailedGapPullIsRepeated(t *testing.T) {
	live(t, reference.Config{PushHeartbeat: time.Second}, hearing, func(t *testing.T, w *world) {
		w.settle()
		w.rule("deaf", "push.drop", nil)
		key := w.keyOf("s1")
		w.read(0, key)
		w.impede(down)
		w.migrate(key, "s2", targets.StageCleaned)
		time.Sleep(3 * time.Second)
		w.impede(nil)
		time.Sleep(5 * time.Second)
		failed, done := 0, 0
		for _, e := range w.of(targets.EventPull, targets.CauseGap) {
			if e.Outcome == targets.Done {
				done++
			} else {
				failed++
			}
		}
		if failed < 2 || failed > 3 || done != 1 {
			t.Errorf("%d failed and %d done, want one a second and then a single one", failed, done)
		}
		if r := w.read(0, key); r.Held != 2 {
			t.Errorf("the client holds epoch %d", r.Held)
		}
	})
}

// What changes while no stream stands is pulled once the next one does, and
// not before: a pull that came earlier could miss a change just as well. A
// control plane that is down is not asked over and over.
func TestAStreamThatBreaksIsOpenedAgain(t *testing.T) {
	live(t, reference.Config{}, hearing, func(t *testing.T, w *world) {
		w.settle()
		key := w.keyOf("s1")
		w.read(0, key)
		w.mu.Lock()
		w.deafened = true
		w.mu.Unlock()
		if err := w.Restart(t.Context(), "control"); err != nil { // breaks the streams
			t.Fatal(err)
		}
		w.migrate(key, "s2", targets.StageCleaned)
		time.Sleep(10 * time.Second)
		if pulls := w.of(targets.EventPull, targets.CauseGap); len(pulls) > 0 {
			t.Errorf("%d pulls while no stream stands", len(pulls))
		}
		w.mu.Lock()
		w.deafened = false
		w.mu.Unlock()
		time.Sleep(time.Second)
		if pulls := w.of(targets.EventPull, targets.CauseGap); len(pulls) != 1 || pulls[0].Applied == 0 {
			t.Errorf("pulls: %+v; want one, of the client that caches anything", pulls)
		}
		if r := w.read(0, key); r.Held != 2 {
			t.Errorf("the client holds epoch %d", r.Held)
		}
	})
}

// A push link that does not come up keeps nothing from starting. Once it does,
// what was cached by then is pulled again.
func TestTheFleetStartsWithoutItsStreams(t *testing.T) {
	for _, warm := range []bool{true, false} {
		var took time.Duration
		var w *world
		live(t, reference.Config{}, func(f *fleet.Config) { hearing(f); f.Warm = warm }, func(t *testing.T, standing *world) {
			w = standing
			c := fleet.Defaults()
			c.Name, c.Warm, c.PullTimeout, c.Clients = "late", warm, 3*time.Second, 2
			w.deafened = true
			began := w.base.Now()
			f, err := fleet.New(t.Context(), w, w.base, w, c)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			took = w.base.Now() - began
			w.mu.Lock()
			w.deafened = false
			w.mu.Unlock()
			time.Sleep(time.Second)
			gaps := 0
			for _, e := range w.of(targets.EventPull, targets.CauseGap) {
				if e.Client == "late-0" || e.Client == "late-1" {
					gaps++
				} else {
					t.Errorf("the fleet whose streams stood from the start pulls: %+v", e)
				}
			}
			if want := map[bool]int{true: 2, false: 0}[warm]; gaps != want {
				t.Errorf("warm %v: %d pulls, want %d", warm, gaps, want)
			}
		})
		if took != 3*time.Second {
			t.Errorf("warm %v: the start took %s", warm, took)
		}
	}
}
