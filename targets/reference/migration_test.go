package reference_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference"
)

// system is what both ways of running offer.
type system interface {
	targets.Target
	targets.Placer
	targets.Fetcher
	targets.Restarter
	targets.Migrator
	targets.Cooperator
	targets.TruthLog
}

// TestMigrationTable is the table of a range's migration, with scatter reads
// that name epochs, that name none, and that take what is available.
func TestMigrationTable(t *testing.T) {
	for _, filter := range []bool{true, false} {
		config := small(func(c *reference.Config) { c.Filter = &filter })
		name := map[bool]string{true: "filtered", false: "unfiltered"}[filter]
		t.Run("memory/"+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { migrationTable(t, startMemory(t, config), filter) })
		})
		t.Run("processes/"+name, func(t *testing.T) { migrationTable(t, startCluster(t, config), filter) })
	}
}

func migrationTable(t *testing.T, s system, filter bool) {
	t.Helper()
	const key = "item-0"
	home := s.Place(key)
	from := fetch(t, s, home)[0].Owner
	to := map[string]string{"s1": "s2", "s2": "s1"}[from]
	// Copies of one document on the nodes, before filtering.
	for _, row := range []struct {
		moment targets.Stage
		old    int
		new    int
		owner  string
	}{
		{"", 1, 0, from},
		{targets.StageCopied, 1, 1, from},
		{targets.StageHandedOver, 1, 1, to}, // the old owner holds an orphan
		{targets.StageCleaned, 0, 1, to},
	} {
		if row.moment != "" {
			if _, err := s.Migrate(t.Context(), home, to, row.moment); err != nil {
				t.Fatal(err)
			}
		}
		if owner := fetch(t, s, home)[0].Owner; owner != row.owner {
			t.Errorf("%q: the owner of record is %s; want %s", row.moment, owner, row.owner)
		}
		held := map[string]int{from: row.old, to: row.new}
		for _, member := range []string{"-0", "-1", "-2"} {
			for shard, want := range held {
				// Secondaries may follow a moment later.
				eventuallyCount(t, s, targets.NodeID(shard+member), key, targets.ConcernAvailable, nil, want)
			}
			seen := scatter(t, s, member, key, epochs(t, s))
			want := row.old + row.new
			if filter {
				want = 1
			}
			if seen != want {
				t.Errorf("%q: a scatter read of the nodes %s has the document %d times; want %d", row.moment, member, seen, want)
			}
		}
	}
}

func fetch(t *testing.T, s targets.Fetcher, objects ...targets.Object) []targets.Entry {
	t.Helper()
	entries, err := s.Fetch(t.Context(), targets.Fetch{Objects: objects, Cause: targets.CauseCold, Client: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func epochs(t *testing.T, s targets.Fetcher) map[targets.Object]targets.Epoch {
	t.Helper()
	out := map[targets.Object]targets.Epoch{}
	for _, e := range fetch(t, s) {
		out[e.Object] = e.Epoch
	}
	return out
}

func scanOne(t *testing.T, s targets.Target, n targets.NodeID, key string, c targets.Concern, e map[targets.Object]targets.Epoch) (int, targets.Reply) {
	t.Helper()
	r := s.Do(t.Context(), targets.Op{Verb: targets.VerbScan, Node: n, Concern: c, Epochs: maps.Clone(e)})
	found := 0
	for _, d := range r.Documents {
		if d.ID == key {
			found++
		}
	}
	return found, r
}

// scatter scans one node of each shard under the same epochs, as often as
// nodes have to refresh, and counts the copies of one document.
func scatter(t *testing.T, s targets.Target, member, key string, e map[targets.Object]targets.Epoch) int {
	t.Helper()
	found := 0
	for _, shard := range []string{"s1", "s2"} {
		waitUntil(t, 10*time.Second, "node "+shard+member+" scans", func() bool {
			n, r := scanOne(t, s, targets.NodeID(shard+member), key, targets.ConcernLocal, e)
			if r.Outcome != targets.Done {
				if !strings.HasPrefix(r.Detail, "route/") {
					t.Fatalf("a refused scan does not name the object: %+v", r)
				}
				return false
			}
			found += n
			return true
		})
	}
	return found
}

func eventuallyCount(t *testing.T, s targets.Target, n targets.NodeID, key string, c targets.Concern, e map[targets.Object]targets.Epoch, want int) {
	t.Helper()
	waitUntil(t, 10*time.Second, "node "+string(n)+" holds the document as often as it should", func() bool {
		got, r := scanOne(t, s, n, key, c, e)
		return r.Outcome == targets.Done && got == want
	})
}

// A scan with an old epoch is refused with the new owner.
func TestScanWithStaleEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := startMemory(t, small(nil))
		o := reference.NewObjects(8)[0]
		old := epochs(t, m)
		scatter(t, m, "-0", "item-0", old)
		if _, err := m.Migrate(t.Context(), o, "s2", targets.StageHandedOver); err != nil {
			t.Fatal(err)
		}
		_, r := scanOne(t, m, "s1-0", "item-0", targets.ConcernLocal, old)
		if r.Code != targets.CodeStaleEpoch || r.Owner != "s2" || r.Epoch != 2 || !strings.Contains(r.Detail, o.String()) {
			t.Errorf("got %+v; want STALE_EPOCH with s2 at 2 and the object in the detail", r)
		}
	})
}

// Between copy and hand-over the object's writes are refused; a migration
// that does not go on loses its hold, and then the copy is made again.
func TestCriticalSection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := startMemory(t, small(nil))
		key := keysOf(small(nil))[0]
		o := m.Place(key)
		write := func(n targets.NodeID, e targets.Epoch) targets.Reply {
			return m.Do(t.Context(), targets.Op{Verb: targets.VerbWrite, Node: n, Key: key, Epoch: e, Value: []byte("late")})
		}
		awaitWrite := func(n targets.NodeID, e targets.Epoch) targets.Reply {
			var r targets.Reply
			waitUntil(t, 5*time.Second, "the write is done", func() bool { r = write(n, e); return r.Outcome == targets.Done })
			return r
		}
		awaitWrite("s1-0", 1)
		migrate := func(stage targets.Stage) {
			if _, err := m.Migrate(t.Context(), o, "s2", stage); err != nil {
				t.Fatal(err)
			}
		}
		migrate(targets.StageCopied)
		if r := write("s1-0", 1); r.Code != targets.CodeMigrating || r.RetryAfter <= 0 {
			t.Errorf("a write in the critical section: %+v; want MIGRATING with a hint", r)
		}
		time.Sleep(6 * time.Second)
		if r := write("s1-0", 1); r.Code != targets.CodeUnknownOwnership {
			t.Errorf("the first write after the section lapsed: %+v; the node must ask before it accepts one", r)
		}
		late := awaitWrite("s1-0", 1)
		migrate(targets.StageHandedOver)
		if r := write("s1-0", 1); r.Code != targets.CodeStaleEpoch {
			t.Errorf("a write at the old owner after the hand-over: %+v; want STALE_EPOCH", r)
		}
		if r := awaitWrite("s2-0", 2); r.Documents[0].Version != late.Documents[0].Version+1 {
			t.Errorf("version %d at the new owner follows %d: the late write was lost", r.Documents[0].Version, late.Documents[0].Version)
		}
	})
}

// A migration that was left half-way does not block another one.
func TestMigrationElsewhereSettlesTheFirst(t *testing.T) {
	for _, left := range []targets.Stage{targets.StageCopied, targets.StageHandedOver} {
		synctest.Test(t, func(t *testing.T) {
			m := startMemory(t, small(func(c *reference.Config) { c.Shards = 3 }))
			key := keysOf(small(nil))[0]
			o := m.Place(key)
			for _, step := range []struct {
				to    string
				stage targets.Stage
			}{{"s2", left}, {"s3", targets.StageCleaned}, {"s1", left}, {"s3", targets.StageCleaned}} {
				if _, err := m.Migrate(t.Context(), o, step.to, step.stage); err != nil {
					t.Fatal(err)
				}
			}
			for n, want := range map[targets.NodeID]int{"s1-0": 0, "s2-0": 0, "s3-0": 1} {
				eventuallyCount(t, m, n, key, targets.ConcernAvailable, nil, want)
			}
			if e := fetch(t, m, o)[0]; e.Owner != "s3" {
				t.Errorf("the truth is %+v; want owner s3", e)
			}
		})
	}
}

// The control plane keeps its word over a restart: epochs do not go back, a
// migration goes on where it was, and followers of the truth miss nothing.
func TestControlPlaneRestarts(t *testing.T) {
	for name, run := range map[string]func(*testing.T, func(*testing.T, system)){
		"memory": func(t *testing.T, try func(*testing.T, system)) {
			t.Helper()
			synctest.Test(t, func(t *testing.T) { try(t, startMemory(t, small(nil))) })
		},
		"processes": func(t *testing.T, try func(*testing.T, system)) {
			t.Helper()
			try(t, startCluster(t, small(nil)))
		},
	} {
		t.Run(name, func(t *testing.T) { run(t, controlRestart) })
	}
}

func controlRestart(t *testing.T, s system) {
	t.Helper()
	o := reference.NewObjects(8)[0]
	follow, end := context.WithCancel(t.Context())
	var seen []targets.Truth
	followed := make(chan error, 1)
	go func() { followed <- s.FollowTruth(follow, func(one targets.Truth) { seen = append(seen, one) }) }()
	for _, stage := range []targets.Stage{targets.StageCopied, targets.StageHandedOver, targets.StageCleaned} {
		if _, err := s.Migrate(t.Context(), o, "s2", stage); err != nil {
			t.Fatal(err)
		}
		if err := s.Restart(t.Context(), "control"); err != nil {
			t.Fatal(err)
		}
	}
	if e := fetch(t, s, o)[0]; e.Owner != "s2" || e.Epoch != 2 {
		t.Errorf("after the restarts the truth is %+v; want s2 at epoch 2", e)
	}
	end()
	if err := <-followed; err != nil {
		t.Fatal(err)
	}
	commits, stages := 0, []targets.Stage(nil)
	for _, one := range seen {
		switch one.Kind {
		case targets.TruthCommit:
			commits++
		case targets.TruthStage:
			stages = append(stages, one.Stage)
		default:
		}
	}
	want := []targets.Stage{targets.StageCopied, targets.StageCopied, targets.StageHandedOver, targets.StageCleaned}
	// Handed-over makes the copy again, since the restart lost the section.
	if commits != 9 || !slices.Equal(stages, want) {
		t.Errorf("the follower saw %d commits and the stages %v", commits, stages)
	}
}
