package metacache_test

import (
	"context"
	"fmt"
	"io/fs"
	"testing"
	"testing/fstest"
	"time"

	"github.com/metachaos/metachaos/load/script"
	"github.com/metachaos/metachaos/results"
	"github.com/metachaos/metachaos/targets"
	metacache "github.com/metachaos/metachaos/xk6-metacache"
)

// instant is a target of one shard and one object that answers at once, so
// that what remains is the cost of the module.
type instant struct{ documents []targets.Document }

var (
	_ targets.Target  = instant{}
	_ targets.Placer  = instant{}
	_ targets.Fetcher = instant{}
)

var theObject = targets.Object{Kind: targets.KindRoute, ID: "r0000"}

func (instant) Info() targets.Info { return targets.Info{Kind: "instant"} }

func (instant) Topology(context.Context) (targets.Topology, error) {
	return targets.Topology{Objects: []targets.Object{theObject}, Nodes: []targets.Node{
		{ID: "s1-0", Shard: "s1", Role: targets.RolePrimary, Index: 1}, {ID: "s1-1", Shard: "s1", Role: targets.RoleSecondary, Index: 1}}}, nil
}

func (i instant) Do(_ context.Context, op targets.Op) targets.Reply {
	return targets.Reply{Outcome: targets.Done, Epoch: op.Epoch, Owner: "s1", Node: op.Node, Shard: "s1", Documents: i.documents, Hops: 1}
}

func (instant) Close(context.Context) error { return nil }

func (instant) Place(string) targets.Object { return theObject }

func (instant) Fetch(context.Context, targets.Fetch) ([]targets.Entry, error) {
	return []targets.Entry{{Object: theObject, Epoch: 1, Owner: "s1"}}, nil
}

// nothing takes samples and events and costs nothing.
type nothing struct{}

func (nothing) Record(...results.Sample) {}
func (nothing) Event(targets.Event)      {}

// benchmarkScript executes the body b.N/per times on one VU and reports the
// cost of one of b.N reads.
func benchmarkScript(b *testing.B, per int, body string) {
	base := targets.NewBase()
	module := metacache.New(metacache.Env{Base: base, Events: nothing{}, Target: func(context.Context) (targets.Target, error) {
		return instant{documents: []targets.Document{{ID: "item-1", Value: []byte("value"), Version: 1}}}, nil
	}})
	defer module.Close()
	text := fmt.Sprintf(`import metacache from 'k6/x/metacache';
		export const options = { scenarios: { s: { executor: 'shared-iterations', iterations: 1, maxDuration: '1h' } } };
		const fleet = new metacache.Fleet({ clients: 100, push: false });
		const keys = Array.from({ length: 1000 }, (_, i) => 'item-' + i);
		export default function () { for (let i = 0; i < %d; i++) { %s } }`, max(1, b.N/per), body)
	tree := fstest.MapFS{"script.js": {Data: []byte(text)}}
	p, err := script.Load(b.Context(), script.Source{Path: "script.js", ReadFile: func(name string) ([]byte, error) { return fs.ReadFile(tree, name) }},
		script.Config{Modules: map[string]script.Module{metacache.ImportPath: module}})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	start := time.Now()
	if _, err := script.Execute(b.Context(), p, script.RunConfig{Recorder: nothing{}, Clock: base}); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(time.Since(start))/float64(b.N), "ns/read")
}

func BenchmarkRead(b *testing.B) { benchmarkScript(b, 1, `fleet.read('item-1');`) }
func BenchmarkReadAndLook(b *testing.B) {
	benchmarkScript(b, 1, `const r = fleet.read('item-1'); if (!r.ok || r.epochLag > 0) throw r.code;`)
}
func BenchmarkReadMany1000(b *testing.B) { benchmarkScript(b, 1000, `fleet.readMany(keys);`) }
func BenchmarkReadManyAndLook(b *testing.B) {
	benchmarkScript(b, 1000, `let n = 0; for (const r of fleet.readMany(keys)) if (r.ok) n++; if (n !== 1000) throw n;`)
}
