package script

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/metachaos/metachaos/results"
)

// discard is a recorder that costs nothing.
type discard struct{}

var _ results.Recorder = discard{}

func (discard) Record(...results.Sample) {}

// benchIterations executes b.N iterations on one VU.
func benchIterations(b *testing.B, body string) {
	text := fmt.Sprintf(`import { check } from 'k6';
		export const options = { scenarios: { s: { executor: 'shared-iterations', iterations: %d, maxDuration: '1h' } } };
		const set = { one: (v) => v === 1 };
		export default function () { %s }`, max(1, b.N), body)
	p, err := Load(b.Context(), source(script(text)), Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	if _, err := Execute(b.Context(), p, RunConfig{Recorder: discard{}, Clock: sinceStart{time.Now()}}); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkEmptyIteration(b *testing.B) { benchIterations(b, "") }
func BenchmarkCheck(b *testing.B)          { benchIterations(b, "check(1, { one: (v) => v === 1 });") }
func BenchmarkHoistedCheck(b *testing.B)   { benchIterations(b, "check(1, set);") }

// BenchmarkVU reports the memory of a VU that has run an iteration.
func BenchmarkVU(b *testing.B) {
	p, err := Load(b.Context(), source(map[string]string{
		"script.js": `import { check, sleep } from 'k6'; import { Counter } from 'k6/metrics'; import { f } from './lib.js'; const c = new Counter('cc');
			export default function () { check(f(), { one: (v) => v === 1 }); c.add(1); }`, "lib.js": "export const f = () => 1;"}), Config{})
	if err != nil {
		b.Fatal(err)
	}
	x := NewExecution(p, RunConfig{Recorder: discard{}, Clock: sinceStart{time.Now()}})
	vus := make([]*VU, b.N)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	b.ResetTimer()
	for i := range vus {
		if vus[i], err = x.NewVU(b.Context(), i+1); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(b.N)/1024, "KiB/VU")
	runtime.KeepAlive(vus)
}
