package metacache_test

import (
	"context"
	"fmt"
	"io/fs"
	"sync/atomic"
	"testing/fstest"

	"github.com/metachaos/metachaos/load/script"
	"github.com/metachaos/metachaos/results"
	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference"
	metacache "github.com/metachaos/metachaos/xk6-metacache"
)

// served counts the operations of a run that are done.
type served struct{ n atomic.Int64 }

func (s *served) Record(samples ...results.Sample) {
	for _, one := range samples {
		if outcome, _ := one.Tags.Get("outcome"); one.Metric.Name == "metacache_ops" && outcome == "done" {
			s.n.Add(1)
		}
	}
}

// A script reads through a fleet of 50 cache clients, on a reference cluster
// within this process.
func Example() {
	ctx, base := context.Background(), targets.NewBase()
	cluster, err := reference.StartInMemory(reference.Config{}, base)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cluster.Close(ctx)
	module := metacache.New(metacache.Env{Base: base, Seed: 7,
		Target: func(context.Context) (targets.Target, error) { return cluster, nil }})
	defer module.Close()

	files := fstest.MapFS{"script.js": {Data: []byte(`
		import metacache from 'k6/x/metacache';
		export const options = { vus: 4, iterations: 200 };
		const fleet = new metacache.Fleet({ clients: 50, ttl: '60s', jitter: 0.2, warm: true });
		export default function () { fleet.read('item-' + __ITER); }`)}}
	source := script.Source{Path: "script.js", ReadFile: func(name string) ([]byte, error) { return fs.ReadFile(files, name) }}
	program, err := script.Load(ctx, source, script.Config{Modules: map[string]script.Module{metacache.ImportPath: module}})
	if err != nil {
		fmt.Println(err)
		return
	}
	count := &served{}
	if _, err := script.Execute(ctx, program, script.RunConfig{Recorder: count, Clock: base}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(count.n.Load(), "reads were served")
	// Output: 200 reads were served
}
