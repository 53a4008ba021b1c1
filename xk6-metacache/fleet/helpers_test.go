package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference"
	"github.com/metachaos/metachaos/xk6-metacache/fleet"
)

// recorder is a sink that keeps everything.
type recorder struct {
	mu     sync.Mutex
	events []targets.Event
}

var _ fleet.Sink = (*recorder)(nil)

func (r *recorder) Event(e targets.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// of returns the events of a verb and, unless it is empty, of a cause.
func (r *recorder) of(verb targets.EventVerb, cause targets.Cause) (out []targets.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.Verb == verb && (cause == "" || e.Cause == cause) {
			out = append(out, e)
		}
	}
	return out
}

// world is a cluster in memory with one fleet of clients. Its control plane
// can be made to misbehave.
type world struct {
	*reference.Memory
	*recorder
	t     *testing.T
	base  targets.Base
	fleet *fleet.Fleet

	hurdle   func(ctx context.Context, f targets.Fetch) error // before each pull of a client
	deafened bool                                             // subscriptions fail
}

var (
	_ targets.Target  = (*world)(nil)
	_ targets.Placer  = (*world)(nil)
	_ targets.Fetcher = (*world)(nil)
	_ targets.Watcher = (*world)(nil)
)

var errDown = errors.New("the control plane is down")

func (w *world) Fetch(ctx context.Context, f targets.Fetch) ([]targets.Entry, error) {
	w.mu.Lock()
	hurdle := w.hurdle
	w.mu.Unlock()
	if hurdle != nil {
		if err := hurdle(ctx, f); err != nil {
			return nil, err
		}
	}
	return w.Memory.Fetch(ctx, f)
}

func (w *world) Watch(ctx context.Context, client string, deliver func(targets.Push)) error {
	w.mu.Lock()
	deafened := w.deafened
	w.mu.Unlock()
	if deafened {
		return errDown
	}
	return w.Memory.Watch(ctx, client, deliver)
}

// impede sets what happens before each pull of a client; nil is nothing.
func (w *world) impede(hurdle func(context.Context, targets.Fetch) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hurdle = hurdle
}

func down(context.Context, targets.Fetch) error { return errDown }

func hang(ctx context.Context, _ targets.Fetch) error {
	<-ctx.Done()
	return errDown // as a gRPC client does, it does not tell the context's error
}

// live runs a test in a bubble of virtual time with a small cluster and a
// fleet on it. Both are closed at the end; the bubble sees to it that nothing
// of them is left.
func live(t *testing.T, cluster reference.Config, change func(*fleet.Config), test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, base: targets.NewBase(), recorder: &recorder{}}
		var err error
		if cluster.Objects == 0 {
			cluster.Objects = 4
		}
		cluster.Documents = 40
		if w.Memory, err = reference.StartInMemory(cluster, w.base); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := w.Memory.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		c := fleet.Defaults()
		c.Clients, c.Seed = 1, 7
		if change != nil {
			change(&c)
		}
		if w.fleet, err = fleet.New(t.Context(), w, w.base, w, c); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := w.fleet.Close(); err != nil {
				t.Error(err)
			}
		})
		test(t, w)
	})
}

// keyOf returns a loaded key that the shard owns at the start.
func (w *world) keyOf(shard string) string {
	w.t.Helper()
	for i := range 40 {
		key := fmt.Sprintf("item-%d", i)
		if w.entry(key).Owner == shard {
			return key
		}
	}
	w.t.Fatalf("%s owns no key", shard)
	return ""
}

// entry is the truth about a key's object.
func (w *world) entry(key string) targets.Entry {
	w.t.Helper()
	entries, err := w.Memory.Fetch(w.t.Context(), targets.Fetch{Objects: []targets.Object{w.Place(key)}, Client: "test"})
	if err != nil || len(entries) != 1 {
		w.t.Fatal(entries, err)
	}
	return entries[0]
}

// read reads as client i and wants it done.
func (w *world) read(i int, key string) fleet.Result {
	w.t.Helper()
	return w.done(w.fleet.Read(w.t.Context(), i, key))
}

func (w *world) done(r fleet.Result) fleet.Result {
	w.t.Helper()
	if r.Event.Outcome != targets.Done {
		w.t.Fatalf("%s %s: %s %s after hops %+v", r.Event.Verb, r.Event.Key, r.Event.Outcome, r.Event.Code, r.Event.Hops)
	}
	return r
}

// settle has every node of every shard serve every object, so that what
// follows sees no first use of an object.
func (w *world) settle() {
	w.t.Helper()
	top, err := w.Topology(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, n := range top.Nodes {
		if n.Role == targets.RoleControl {
			continue
		}
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			r := w.Do(w.t.Context(), targets.Op{Verb: targets.VerbScan, Node: n.ID})
			if r.Outcome == targets.Done {
				break
			}
			if time.Now().After(end) {
				w.t.Fatalf("node %s does not come to know its objects: %+v", n.ID, r)
			}
		}
	}
}

// migrate moves a key's object.
func (w *world) migrate(key, to string, stage targets.Stage) {
	w.t.Helper()
	if _, err := w.Migrate(w.t.Context(), w.Place(key), to, stage); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) rule(id, name string, with map[string]string) {
	w.t.Helper()
	if err := w.SetRule(w.t.Context(), targets.Rule{ID: id, Name: name, With: with, Lease: time.Hour}); err != nil {
		w.t.Fatal(err)
	}
}

// grants are the pulls that the control plane answered, but for those of its
// own nodes and of the test.
func (w *world) grants(cause targets.Cause) (out []targets.Truth) {
	w.t.Helper()
	ended, end := context.WithCancel(w.t.Context())
	end()
	err := w.FollowTruth(ended, func(one targets.Truth) {
		if one.Kind == targets.TruthGrant && one.Cause == cause && one.To != "test" {
			out = append(out, one)
		}
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}
