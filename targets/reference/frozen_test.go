package reference_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference"
)

// freezer freezes the primary of s1 and returns what thaws it.
type freezer func(t *testing.T, c *reference.Cluster) (thaw func())

// stop silences the whole process.
func stop(t *testing.T, c *reference.Cluster) func() {
	t.Helper()
	p := processOf(t, c, "s1-0")
	signal(t, p, unix.SIGSTOP)
	waitUntil(t, 5*time.Second, "the primary stops", func() bool { return p.State() == 'T' })
	return func() { signal(t, p, unix.SIGCONT) }
}

// stall leaves everything but the write path alive.
func stall(t *testing.T, c *reference.Cluster) func() {
	t.Helper()
	rule := targets.Rule{ID: "freeze", Name: "primary.freeze", On: targets.Selector{Shard: "s1"}, Lease: time.Minute}
	if err := c.SetRule(t.Context(), rule); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := c.ClearRule(t.Context(), "freeze"); err != nil {
			t.Error(err)
		}
		if s, err := c.RuleState(t.Context(), "freeze"); err != nil || s.Armed || s.Hits == 0 {
			t.Errorf("after the thaw the rule is in state %+v (error: %v); want hits and not armed", s, err)
		}
	}
}

func processOf(t *testing.T, c *reference.Cluster, id targets.NodeID) targets.Process {
	t.Helper()
	for _, p := range c.Processes() {
		if p.Node == id {
			return p
		}
	}
	t.Fatalf("no process of node %s in %v", id, c.Processes())
	return targets.Process{}
}

// signal sends to the very process that the cluster listed, or to none.
func signal(t *testing.T, p targets.Process, s unix.Signal) {
	t.Helper()
	if !p.Alive() {
		t.Fatalf("process %+v is gone", p)
	}
	if err := unix.Kill(p.PID, s); err != nil {
		t.Fatal(err)
	}
}

func waitUntil(t *testing.T, limit time.Duration, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !so(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("within %v it was not so that %s", limit, what)
		}
	}
}

// keysOf returns a loaded key of each object.
func keysOf(c reference.Config) []string {
	c = c.WithDefaults()
	byObject := map[targets.Object]string{}
	for i := range c.Documents {
		key := fmt.Sprintf("item-%d", i)
		byObject[reference.ObjectFor(key, c.Objects)] = key
	}
	out := make([]string, 0, c.Objects)
	for _, o := range reference.NewObjects(c.Objects) {
		out = append(out, byObject[o])
	}
	return out
}

const frozenLimit = 600 * time.Millisecond

// TestFrozenPrimary is the frozen-primary table, row by row, for each way of
// freezing and each way of refreshing.
func TestFrozenPrimary(t *testing.T) {
	t.Parallel()
	for _, refresh := range []string{reference.ViaPrimary, reference.Direct, reference.FromDisk} {
		for way, freeze := range map[string]freezer{"stop": stop, "write-stall": stall} {
			t.Run(refresh+"/"+way, func(t *testing.T) {
				t.Parallel()
				config := small(func(c *reference.Config) { c.Shards, c.Refresh, c.RefreshLimit = 1, refresh, frozenLimit })
				f := frozen{t: t, c: startCluster(t, config), keys: keysOf(config)}
				f.rows(refresh, freeze)
			})
		}
	}
}

type frozen struct {
	t    *testing.T
	c    *reference.Cluster
	keys []string // one of each object; the last is not used before the freeze
}

func (f frozen) rows(refresh string, freeze freezer) {
	used, unused := f.keys[:len(f.keys)-1], f.keys[len(f.keys)-1]
	for _, key := range used {
		for _, n := range []targets.NodeID{"s1-0", "s1-1", "s1-2"} {
			f.served(n, key)
		}
	}
	thaw := freeze(f.t, f.c)
	f.writeHangs(used[0])
	began := time.Now()
	if err := f.c.Restart(f.t.Context(), "s1-1"); err != nil {
		f.t.Fatal(err)
	}

	// Restarted, per way of refreshing.
	for _, key := range used {
		first := f.read("s1-1", key, targets.ConcernLocal)
		if refresh == reference.FromDisk {
			f.want(first, targets.Done, "", "the restarted secondary's first read of "+key)
		} else {
			f.want(first, targets.Refused, targets.CodeUnknownOwnership, "the restarted secondary's first read of "+key)
		}
	}
	if refresh == reference.Direct {
		for _, key := range f.keys {
			f.served("s1-1", key)
			f.served("s1-2", key)
		}
	}

	failed, object := "", reference.ObjectFor(unused, len(f.keys)).String()
	for time.Since(began) < 2*frozenLimit || failed == "" {
		if time.Since(began) > 20*frozenLimit {
			f.t.Fatal("no refresh failed at its limit")
		}
		for _, key := range used {
			f.want(f.read("s1-2", key, targets.ConcernLocal), targets.Done, "", "a used object on the other secondary")
			if refresh == reference.ViaPrimary {
				f.want(f.read("s1-1", key, targets.ConcernLocal), targets.Refused, targets.CodeUnknownOwnership, "the restarted secondary")
			}
		}
		for _, n := range []targets.NodeID{"s1-1", "s1-2"} {
			available := f.read(n, unused, targets.ConcernAvailable)
			f.want(available, targets.Done, "", "read concern available")
			if len(available.Documents) != 1 {
				f.t.Errorf("read concern available gave %v; want the document", available.Documents)
			}
		}
		if refresh == reference.Direct {
			break // no refresh fails
		}
		r := f.read("s1-2", unused, targets.ConcernLocal)
		f.want(r, targets.Refused, targets.CodeUnknownOwnership, "first use of an object")
		if strings.Contains(r.Detail, "refresh "+object+" failed after") {
			failed = r.Detail
		}
		time.Sleep(20 * time.Millisecond)
	}
	thaw()
	for _, key := range f.keys {
		for _, n := range []targets.NodeID{"s1-0", "s1-1", "s1-2"} {
			f.served(n, key)
		}
	}
	f.want(f.write(f.t.Context(), unused), targets.Done, "", "a write after the thaw")
}

func (f frozen) read(n targets.NodeID, key string, c targets.Concern) targets.Reply {
	ctx, cancel := context.WithTimeout(f.t.Context(), 5*time.Second)
	defer cancel()
	return f.c.Do(ctx, targets.Op{Verb: targets.VerbRead, Node: n, Key: key, Epoch: 1, Concern: c})
}

func (f frozen) want(r targets.Reply, outcome targets.Outcome, code targets.Code, what string) {
	f.t.Helper()
	if r.Outcome != outcome || r.Code != code {
		f.t.Fatalf("%s: node %s gave %s %s (%s); want %s %s", what, r.Node, r.Outcome, r.Code, r.Detail, outcome, code)
	}
}

func (f frozen) served(n targets.NodeID, key string) {
	f.t.Helper()
	waitUntil(f.t, 15*time.Second, fmt.Sprintf("node %s serves %s", n, key), func() bool {
		return f.read(n, key, targets.ConcernLocal).Outcome == targets.Done
	})
}

// writeHangs is the application's view of the freeze: no refusal, a time-out.
func (f frozen) writeHangs(key string) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 200*time.Millisecond)
	defer cancel()
	f.want(f.write(ctx, key), targets.Unknown, targets.CodeTimeout, "a write to the frozen primary")
}

func (f frozen) write(ctx context.Context, key string) targets.Reply {
	return f.c.Do(ctx, targets.Op{Verb: targets.VerbWrite, Node: "s1-0", Key: key, Epoch: 1, Value: []byte("x")})
}
