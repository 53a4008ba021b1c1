package reference_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference"
)

// A stalled write path holds writes and nothing else. Held writes go on when
// the stall ends, unless their caller has gone.
func TestWriteStall(t *testing.T) {
	for _, end := range []string{"cleared", "lapsed"} {
		t.Run(end, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := startMemory(t, small(nil))
				key := keysOf(small(nil))[0] // of s1
				write := func(ctx context.Context, value string) targets.Reply {
					return m.Do(ctx, targets.Op{Verb: targets.VerbWrite, Node: "s1-0", Key: key, Value: []byte(value)})
				}
				read := func() targets.Reply {
					return m.Do(t.Context(), targets.Op{Verb: targets.VerbRead, Node: "s1-0", Key: key, Concern: targets.ConcernAvailable})
				}
				err := m.SetRule(t.Context(), targets.Rule{ID: "f", Name: "primary.freeze", On: targets.Selector{Shard: "s1"}, Lease: 10 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				gone, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				patient := make(chan targets.Reply)
				began := time.Now()
				go func() { patient <- write(t.Context(), "patient") }()
				if r := write(gone, "gone"); r.Outcome != targets.Unknown || r.Code != targets.CodeTimeout {
					t.Errorf("a held write whose deadline passed: %+v; want unknown by time-out", r)
				}
				if r := read(); r.Outcome != targets.Done || r.Documents[0].Version != 1 {
					t.Errorf("a read while writes are held: %+v", r)
				}
				if s, err := m.RuleState(t.Context(), "f"); err != nil || !s.Armed || s.Hits != 2 {
					t.Errorf("rule state %+v, %v; want it armed with two held writes", s, err)
				}
				want := 10 * time.Second
				if end == "cleared" {
					want = time.Second
					if err := m.ClearRule(t.Context(), "f"); err != nil {
						t.Fatal(err)
					}
				}
				if r := <-patient; r.Outcome != targets.Done {
					t.Errorf("the held write: %+v; want done", r)
				}
				if held := time.Since(began); held != want {
					t.Errorf("the write was held for %v; want %v", held, want)
				}
				if d := read().Documents[0]; d.Version != 2 || string(d.Value) != "patient" {
					t.Errorf("document %+v; the write of the caller who had gone must not count", d)
				}
			})
		})
	}
}

func TestPushDropLeavesAHole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := startMemory(t, small(nil))
		ctx, stop := context.WithCancel(t.Context())
		var struck, spared []targets.Push
		ended := make(chan error, 2)
		go func() { ended <- m.Watch(ctx, "a-1", func(p targets.Push) { struck = append(struck, p) }) }()
		go func() { ended <- m.Watch(ctx, "b-1", func(p targets.Push) { spared = append(spared, p) }) }()
		synctest.Wait()
		err := m.SetRule(t.Context(), targets.Rule{ID: "d", Name: "push.drop", Lease: time.Minute,
			With: map[string]string{"client": "a-", "count": "2"}})
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range reference.NewObjects(3) {
			if _, err := m.Migrate(t.Context(), o, []string{"s2", "s1"}[i%2], targets.StageCleaned); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second) // heartbeats show also a hole at the end
		stop()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		if holes, entries := tally(struck); holes != 2 || entries != 1 {
			t.Errorf("the client that lost two of three pushes sees %d holes and %d entries", holes, entries)
		}
		if holes, entries := tally(spared); holes != 0 || entries != 3 {
			t.Errorf("the client that lost nothing sees %d holes and %d entries", holes, entries)
		}
		if s, err := m.RuleState(t.Context(), "d"); err != nil || s.Hits != 2 || s.Seen != 3 {
			t.Errorf("rule state %+v, %v; want 3 seen and 2 hits", s, err)
		}
		if lost := lostPushes(t, m); lost != 2 {
			t.Errorf("the truth knows of %d lost pushes; want 2", lost)
		}
	})
}

// tally counts the numbers that are missing, and the entries that came.
func tally(pushes []targets.Push) (holes, entries int) {
	var last uint64
	for _, p := range pushes {
		holes += int(p.Seq - last - 1)
		last = p.Seq
		entries += len(p.Entries)
	}
	return holes, entries
}

func lostPushes(t *testing.T, m *reference.Memory) (lost int) {
	t.Helper()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	err := m.FollowTruth(ended, func(one targets.Truth) {
		if one.Kind == targets.TruthPush && one.Lost {
			lost++
		}
	})
	if err != nil {
		t.Error(err)
	}
	return lost
}

func TestTTLSynchronizeReachesEverySubscriber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := startMemory(t, small(nil))
		ctx, stop := context.WithCancel(t.Context())
		expiries, ended := make(chan time.Duration, 10), make(chan error, 3)
		for _, client := range []string{"a", "b", "c"} {
			go func() {
				ended <- m.Watch(ctx, client, func(p targets.Push) {
					if p.ExpireIn > 0 {
						expiries <- p.ExpireIn
					}
				})
			}()
		}
		synctest.Wait()
		err := m.SetRule(t.Context(), targets.Rule{ID: "s", Name: "ttl.synchronize", Lease: time.Second, With: map[string]string{"in": "250ms"}})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		stop()
		for range 3 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if in := <-expiries; in != 250*time.Millisecond {
				t.Errorf("told to expire in %v", in)
			}
		}
		if s, err := m.RuleState(t.Context(), "s"); err != nil || s.Hits != 3 {
			t.Errorf("rule state %+v, %v; want three hits", s, err)
		}
	})
}
