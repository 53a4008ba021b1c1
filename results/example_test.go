package results_test

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/metachaos/metachaos/results"
	"github.com/metachaos/metachaos/targets"
)

// A run is recorded while it runs and read afterwards.
func Example() {
	root, err := os.MkdirTemp("", "metachaos-example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(root)

	folder, err := results.Create(filepath.Join(root, "lost-pushes"), results.Manifest{Name: "lost-pushes", Seed: 7})
	if err != nil {
		panic(err)
	}
	metrics := results.NewRegistry()
	duration := metrics.MustMetric("metacache_duration", results.Trend, results.ContainsTime)
	folder.Record(results.Sample{At: time.Second, Metric: duration, Tags: metrics.Tags(map[string]string{"op": "read"}), Value: 1.5})
	folder.Event(targets.Event{Start: time.Second, End: time.Second + 1500*time.Microsecond, Verb: targets.EventRead, Outcome: targets.Done})
	if err := folder.Close(func(m *results.Manifest) { m.LoadEnd = 2 * time.Second }); err != nil {
		panic(err)
	}

	run, err := results.Open(folder.Dir())
	if err != nil {
		panic(err)
	}
	for e, err := range run.Events() {
		if err != nil {
			panic(err)
		}
		fmt.Println(e.Verb, e.Outcome, e.End-e.Start)
	}
	for s, err := range run.Samples() {
		if err != nil {
			panic(err)
		}
		fmt.Println(s.Metric.Name, s.Tags.Map(), s.Value)
	}
	fmt.Println("complete:", run.Manifest().Complete, "damaged:", run.Damage().Total())
	// Output:
	// read done 1.5ms
	// metacache_duration map[op:read] 1.5
	// complete: true damaged: 0
}
