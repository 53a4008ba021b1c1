package analysis_test

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/metachaos/metachaos/results"
	"github.com/metachaos/metachaos/results/analysis"
	"github.com/metachaos/metachaos/targets"
)

// A scatter read returned one of its documents twice.
func ExampleJudge() {
	root, err := os.MkdirTemp("", "metachaos-example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(root)
	folder, err := results.Create(filepath.Join(root, "run"), results.Manifest{
		Name:         "migration",
		Expectations: []results.Expectation{{Metric: "duplicates.rate", Window: "whole", Is: "value==0"}},
	})
	if err != nil {
		panic(err)
	}
	folder.Event(targets.Event{End: time.Second, Verb: targets.EventScan, Outcome: targets.Done, Documents: 100, Duplicates: 1})
	if err := folder.Close(nil); err != nil {
		panic(err)
	}

	run, err := results.Open(folder.Dir())
	if err != nil {
		panic(err)
	}
	verdict, err := analysis.Judge(run)
	if err != nil {
		panic(err)
	}
	for _, f := range verdict.Findings {
		fmt.Printf("%s: %s is %s: %s\n", f.Result, f.Metric, *f.Value, f.Detail)
		fmt.Printf("see %s, line %d\n", f.Evidence.File, f.Evidence.FirstLine)
	}
	// Output:
	// fail: duplicates.rate is 0.01: 1 of 100 documents returned twice, in 1 of 1 scans
	// see events.ndjson, line 1
}
