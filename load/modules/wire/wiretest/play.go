// Package wiretest runs scripts that use modules, for the tests of those.
package wiretest

import (
	"bytes"
	"context"
	"io/fs"
	"log/slog"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/metachaos/metachaos/load/script"
	"github.com/metachaos/metachaos/results"
)

// Outcome is all that a test can see of a run.
type Outcome struct {
	Err     error
	Log     string
	Samples []results.Sample
}

// Count returns how many samples a metric has under tags; nil is any.
func (o Outcome) Count(metric string, tags map[string]string) (n int) {
	for _, s := range o.Samples {
		if s.Metric.Name == metric && s.Tags.Matches(tags) {
			n++
		}
	}
	return n
}

// Sum adds up the values of a metric under tags; nil is any.
func (o Outcome) Sum(metric string, tags map[string]string) (sum float64) {
	for _, s := range o.Samples {
		if s.Metric.Name == metric && s.Tags.Matches(tags) {
			sum += s.Value
		}
	}
	return sum
}

// Play loads and executes script.js among files. The modules and, unless it is
// set, the logger of the configuration are completed.
func Play(t testing.TB, cfg script.Config, files map[string]string) Outcome {
	t.Helper()
	tree := fstest.MapFS{}
	for name, text := range files {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	r := &recorder{}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(r, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	program, err := script.Load(ctx, script.Source{Path: "script.js", ReadFile: func(name string) ([]byte, error) { return fs.ReadFile(tree, name) }}, cfg)
	if err == nil {
		_, err = script.Execute(ctx, program, script.RunConfig{Recorder: r, Clock: clock{time.Now()}})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return Outcome{Err: err, Log: r.log.String(), Samples: r.samples}
}

// Passes plays and fails the test unless the script's checks all hold, so many
// of them.
func Passes(t testing.TB, want int, cfg script.Config, files map[string]string) Outcome {
	t.Helper()
	o := Play(t, cfg, files)
	if o.Err != nil || o.Sum("checks", nil) != float64(want) || o.Count("checks", nil) != want {
		t.Errorf("%v of %d checks hold, want %d; error %v", o.Sum("checks", nil), o.Count("checks", nil), want, o.Err)
		for _, s := range o.Samples {
			if s.Metric.Name == "checks" && s.Value == 0 {
				name, _ := s.Tags.Get("check")
				t.Errorf("check %q does not hold", name)
			}
		}
		t.Log(o.Log)
	}
	return o
}

type clock struct{ start time.Time }

var _ script.Clock = clock{}

func (c clock) Now() time.Duration { return time.Since(c.start) }

// recorder keeps samples and the log.
type recorder struct {
	mu      sync.Mutex
	samples []results.Sample
	log     bytes.Buffer
}

var _ results.Recorder = (*recorder)(nil)

func (r *recorder) Record(samples ...results.Sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.samples = append(r.samples, samples...)
}

func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.Write(b)
}
