package output

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/metachaos/metachaos/results"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var base = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// fixture is a run with one metric of each kind and a set of tags.
type fixture struct {
	run                      Run
	count, level, share, lat *results.Metric
	tags                     *results.Tags
}

func newFixture() fixture {
	reg := results.NewRegistry()
	f := fixture{
		count: reg.MustMetric("mine", results.Counter, results.ContainsDefault),
		level: reg.MustMetric("level", results.Gauge, results.ContainsDefault),
		share: reg.MustMetric("share", results.Rate, results.ContainsDefault),
		lat:   reg.MustMetric("lat", results.Trend, results.ContainsTime),
		tags: reg.Tags(map[string]string{"scenario": "default", "group": "", "url": "http://h/?a=1&b=2", "vu": "7",
			"z": "y", "a": "b, \"c\""}),
	}
	f.run = Run{Base: base, SystemTags: []string{"url", "scenario", "group", "vu"}, Watched: []Watched{
		{Metric: "mine", Name: "mine", Thresholds: []Threshold{{Source: "count>0"}, {Source: "rate<9", AbortOnFail: true, DelayAbort: 2 * time.Second}}},
		{Metric: "mine", Name: "mine{a:b}", Tags: map[string]string{"a": "b"}},
	}}
	return f
}

// written runs an output over samples and returns what it wrote to a file.
func written(t *testing.T, spec string, env Env, f fixture, samples ...results.Sample) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "out")
	env.Create = func(string) (io.WriteCloser, error) { return os.Create(path) }
	o, err := Open(spec, env)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Start(t.Context(), f.run); err != nil {
		t.Fatal(err)
	}
	o.Record(samples...)
	if err := o.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestStandardOutput(t *testing.T) {
	f := newFixture()
	for _, spec := range []string{"json", "json=", "json=-", "csv=-"} {
		var b bytes.Buffer
		o, err := Open(spec, Env{Stdout: &b})
		if err != nil {
			t.Fatal(err)
		}
		if err := o.Start(t.Context(), f.run); err != nil {
			t.Fatal(err)
		}
		o.Record(results.Sample{Metric: f.count, Value: 1})
		if err := o.Stop(t.Context()); err != nil || !strings.Contains(b.String(), "mine") {
			t.Errorf("%s wrote %q, %v", spec, b.String(), err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	for spec, want := range map[string]string{
		"nonsense=x":             `unknown output "nonsense"`,
		"cvs":                    `did you mean "csv"?`,
		"csv=fileName=a,zip=yes": "unknown setting",
		"csv=saveInterval=0s":    "not positive",
		"csv=timeFormat=unixx":   `did you mean "unix"?`,
		"prometheus-rw=nowhere":  "bad URL",
		"opentelemetry=x":        "takes no argument",
	} {
		_, err := Open(spec, Env{})
		var coded interface{ ExitCode() int }
		if err == nil || !strings.Contains(err.Error(), want) || !errors.As(err, &coded) || coded.ExitCode() != 255 {
			t.Errorf("Open(%q) = %v, want %q with exit code 255", spec, err, want)
		}
	}
	for name, spec := range map[string]string{"K6_CSV_SAVE_INTERVAL": "csv", "K6_PROMETHEUS_RW_PUSH_INTERVAL": "prometheus-rw",
		"K6_PROMETHEUS_RW_TREND_STATS": "prometheus-rw", "K6_PROMETHEUS_RW_STALE_MARKERS": "prometheus-rw",
		"K6_PROMETHEUS_RW_HTTP_HEADERS": "prometheus-rw", "K6_OTEL_EXPORT_INTERVAL": "opentelemetry", "K6_OTEL_EXPORTER_PROTOCOL": "opentelemetry"} {
		if _, err := Open(spec, Env{Lookup: lookup(map[string]string{name: "rubbish"})}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=rubbish: %v, want an error that names it", name, err)
		}
	}
}

func TestStartTellsWhichFileCannotBeMade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "no", "such", "folder", "x.json")
	o, err := Open("json="+path, Env{})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Start(t.Context(), Run{}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("Start = %v, want an error that names the file", err)
	}
}

// broken is a file whose disk is full after some bytes.
type broken struct{ room int }

var errFull = errors.New("no space left")

func (b *broken) Write(p []byte) (int, error) {
	if b.room -= len(p); b.room < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func (b *broken) Close() error { return nil }

func TestStopTellsWhatWasLost(t *testing.T) {
	f := newFixture()
	o, err := Open("json=x", Env{Create: func(string) (io.WriteCloser, error) { return &broken{room: 10}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Start(t.Context(), f.run); err != nil {
		t.Fatal(err)
	}
	for range 2000 {
		o.Record(results.Sample{Metric: f.count, Tags: f.tags, Value: 1})
	}
	err = o.Stop(t.Context())
	if !errors.Is(err, errFull) || !strings.Contains(err.Error(), "2000 samples are lost") {
		t.Errorf("Stop = %v, want the cause and 2000 lost samples", err)
	}
}

func TestManyRecordersLoseNothing(t *testing.T) {
	f := newFixture()
	var b bytes.Buffer
	o, err := Open("json", Env{Stdout: &b})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Start(t.Context(), f.run); err != nil {
		t.Fatal(err)
	}
	const recorders, each = 8, 2000
	var all sync.WaitGroup
	for i := range recorders {
		all.Go(func() {
			batch := make([]results.Sample, 1)
			for n := range each { // the slice is the recorder's own, and used again
				batch[0] = results.Sample{Metric: f.count, Value: float64(i*each + n)}
				o.Record(batch...)
			}
		})
	}
	all.Wait()
	if err := o.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(b.String()) {
		seen[line] = true
	}
	if len(seen) != recorders*each+1 { // and the line of the metric
		t.Errorf("%d different lines, want %d", len(seen), recorders*each+1)
	}
}

// stuck is a file that takes nothing until it is released.
type stuck struct{ release chan struct{} }

func (s *stuck) Write(p []byte) (int, error) { <-s.release; return len(p), nil }
func (s *stuck) Close() error                { return nil }

func TestAStuckFileSlowsTheLoadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		file := &stuck{release: make(chan struct{})}
		o, err := Open("json=x", Env{Create: func(string) (io.WriteCloser, error) { return file, nil }})
		if err != nil {
			t.Fatal(err)
		}
		if err := o.Start(context.Background(), f.run); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		begun := time.Now()
		const n = 3 * queuedBatches
		for range n {
			o.Record(results.Sample{Metric: f.count, Value: 1})
		}
		if took := time.Since(begun); took != patience {
			t.Errorf("recording took %v, want %v", took, patience)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := o.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Stop of a stuck file = %v, want a deadline", err)
		}
		close(file.release)
		err = o.Stop(context.Background())
		if err == nil || !strings.Contains(err.Error(), "samples are lost") {
			t.Errorf("Stop = %v, want lost samples", err)
		}
	})
}

func TestRecordAfterStopIsCounted(t *testing.T) {
	f := newFixture()
	o := newFile(Env{}.withDefaults(), "-", time.Second, newJSONLines)
	if err := o.Start(t.Context(), f.run); err != nil {
		t.Fatal(err)
	}
	if err := o.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.Record(results.Sample{Metric: f.count})
	if lost := o.queue.lost.Load(); lost != 1 {
		t.Errorf("%d lost, want 1", lost)
	}
}

func BenchmarkJSONLines(b *testing.B) {
	f := newFixture()
	o := newFile(Env{}.withDefaults(), "-", time.Second, newJSONLines)
	if err := o.Start(b.Context(), f.run); err != nil {
		b.Fatal(err)
	}
	batch := make([]results.Sample, 64)
	for i := range batch {
		batch[i] = results.Sample{At: time.Duration(i), Metric: f.lat, Tags: f.tags, Value: float64(i) / 3}
	}
	for b.Loop() {
		o.Record(batch...)
	}
	if err := o.Stop(b.Context()); err != nil {
		b.Fatal(err)
	}
}

func ExampleOpen() {
	reg := results.NewRegistry()
	hits := reg.MustMetric("hits", results.Counter, results.ContainsDefault)
	o, err := Open("csv=-", Env{Stdout: os.Stdout})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	if err := o.Start(ctx, Run{Base: time.Unix(1_700_000_000, 0), SystemTags: []string{"group"}}); err != nil {
		fmt.Println(err)
		return
	}
	o.Record(results.Sample{At: time.Second, Metric: hits, Tags: reg.Tags(map[string]string{"lane": "x"}), Value: 2})
	if err := o.Stop(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// metric_name,timestamp,metric_value,group,extra_tags,metadata
	// hits,1700000001,2.000000,,lane=x,
}
