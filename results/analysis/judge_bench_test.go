package analysis

import (
	"path/filepath"
	"testing"

	"github.com/metachaos/metachaos/results"
)

// BenchmarkJudge measures what an operation of the record costs to judge,
// reading included.
func BenchmarkJudge(b *testing.B) {
	const n = 50_000
	r := frozen()
	f, err := results.Create(filepath.Join(b.TempDir(), "run"), r.manifest)
	if err != nil {
		b.Fatal(err)
	}
	for i := range n {
		f.Event(r.events[i%len(r.events)])
	}
	for _, t := range r.truth {
		f.Truth(t)
	}
	for _, i := range r.injections {
		f.Injection(i)
	}
	if err := f.Close(nil); err != nil {
		b.Fatal(err)
	}
	run, err := results.Open(f.Dir())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Judge(run); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n*b.N), "ns/event")
}
