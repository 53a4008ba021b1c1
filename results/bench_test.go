package results

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/metachaos/metachaos/targets"
)

// operationSamples are what a k6-like engine records for one operation: five
// samples of one instant.
func operationSamples(n int) []Sample {
	random := rand.New(rand.NewPCG(1, 2))
	reg := NewRegistry()
	count := reg.MustMetric("metacache_ops", Counter, ContainsDefault)
	duration := reg.MustMetric("metacache_duration", Trend, ContainsTime)
	failed := reg.MustMetric("metacache_failed", Rate, ContainsDefault)
	iteration := reg.MustMetric("iteration_duration", Trend, ContainsTime)
	iterations := reg.MustMetric("iterations", Counter, ContainsDefault)
	scenario := reg.Tags(map[string]string{"scenario": "default"})
	var sets []*Tags
	for _, op := range []string{"read", "write", "scan"} {
		for _, shard := range []string{"s1", "s2", "s3", "s4"} {
			sets = append(sets, reg.Tags(map[string]string{"scenario": "default", "op": op, "shard": shard}))
		}
	}
	out := make([]Sample, 0, n+4)
	var at time.Duration
	for len(out) < n {
		at += time.Duration(random.ExpFloat64() * 20_000)
		set := sets[random.IntN(len(sets))]
		ms := float64(time.Duration(80_000+random.ExpFloat64()*300_000)) / float64(time.Millisecond)
		out = append(out,
			Sample{at, count, set, 1}, Sample{at, duration, set, ms}, Sample{at, failed, set, float64(random.IntN(2))},
			Sample{at, iteration, scenario, ms * 1.1}, Sample{at, iterations, scenario, 1})
	}
	return out[:n]
}

// BenchmarkSamples measures a sample from the hand-over to the disk; one
// iteration is one sample, handed over five at a time.
func BenchmarkSamples(b *testing.B) {
	samples := operationSamples(5 * 50_000)
	b.Run("handover", func(b *testing.B) {
		box := newMailbox[Sample](1<<16, time.Second)
		spare := []Sample{}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if i%5 == 0 {
				k := i % len(samples)
				box.put(samples[k : k+5]...)
			}
			if i%40_000 == 0 {
				spare, _ = box.take(spare)
			}
		}
	})
	b.Run("stored", func(b *testing.B) {
		f := mustCreate(b, Manifest{})
		b.ReportAllocs()
		n := 0
		before := processorTime(b)
		for i := 0; b.Loop(); i++ {
			n++
			if i%5 == 0 {
				k := i % len(samples)
				f.Record(samples[k : k+5]...)
			}
		}
		if err := f.Close(nil); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(processorTime(b)-before)/float64(n), "cpu-ns/sample")
		b.ReportMetric(float64(folderSize(b, f.Dir()))/float64(n), "bytes/sample")
	})
}

// processorTime is what this process has used of all cores: unlike elapsed
// time, it says what storing costs on a busy machine.
func processorTime(b *testing.B) time.Duration {
	var use unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

func folderSize(b *testing.B, dir string) (size int64) {
	err := filepath.Walk(dir, func(_ string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return size
}

func BenchmarkEventEncoding(b *testing.B) {
	e := targets.Event{
		Start: 12_345_678_901, End: 12_346_012_345, Client: "client-00017", Verb: targets.EventRead,
		Object: targets.Object{Kind: targets.KindRoute, ID: "r0001"}, Key: "item-1234", Outcome: targets.Done,
		Sent: 3, Served: 3, Node: "s1-2", Shard: "s1", Cache: targets.CacheHit, HopCount: 1, Documents: 1, Version: 9,
	}
	var line []byte
	b.ReportAllocs()
	for b.Loop() {
		line, _ = appendEvent(line[:0], e)
	}
	b.ReportMetric(float64(len(line)+1), "bytes/event")
}

func BenchmarkEventReading(b *testing.B) {
	f := mustCreate(b, Manifest{})
	const n = 20_000
	for i := range n {
		f.Event(targets.Event{Start: time.Duration(i), End: time.Duration(i + 5), Client: "client-00017", Verb: targets.EventRead,
			Object: targets.Object{Kind: targets.KindRoute, ID: "r0001"}, Outcome: targets.Done, Sent: 3, Served: 3, Node: "s1-2", Shard: "s1"})
	}
	if err := f.Close(nil); err != nil {
		b.Fatal(err)
	}
	run := mustOpen(b, f.Dir())
	for b.Loop() {
		if got := len(collect(b, run.Events())); got != n {
			b.Fatalf("read %d events", got)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n*b.N), "ns/event")
}
