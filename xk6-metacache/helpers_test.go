package metacache_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/metachaos/metachaos/load/script"
	"github.com/metachaos/metachaos/results"
	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference"
	metacache "github.com/metachaos/metachaos/xk6-metacache"
)

// outcome is all that a test can see of a run.
type outcome struct {
	mu      sync.Mutex
	samples []results.Sample
	events  []targets.Event
	log     bytes.Buffer
	err     error
	program *script.Program
	module  *metacache.Module
	started int // how many fleets asked for the target
}

// Record implements [results.Recorder].
func (o *outcome) Record(samples ...results.Sample) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.samples = append(o.samples, samples...)
}

// Event implements the sink of fleets.
func (o *outcome) Event(e targets.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events = append(o.events, e)
}

// Write implements [io.Writer] for the log.
func (o *outcome) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.log.Write(b)
}

// lines are what the script printed.
func (o *outcome) lines() []string {
	var out []string
	for line := range strings.Lines(o.log.String()) {
		out = append(out, strings.TrimSuffix(line, "\n"))
	}
	return out
}

// where sums the values of a metric under tags, and counts its samples.
func (o *outcome) where(metric string, tags map[string]string) (sum float64, n int) {
	for _, s := range o.samples {
		if s.Metric.Name == metric && s.Tags.Matches(tags) {
			sum += s.Value
			n++
		}
	}
	return sum, n
}

// code is the exit status that the error asks for.
func (o *outcome) code() int {
	var coded interface{ ExitCode() int }
	if errors.As(o.err, &coded) {
		return coded.ExitCode()
	}
	return 0
}

// plain is a handler that prints messages and nothing else.
type plain struct{ to *outcome }

var _ slog.Handler = plain{}

func (plain) Enabled(context.Context, slog.Level) bool { return true }
func (p plain) Handle(_ context.Context, r slog.Record) error {
	_, err := fmt.Fprintln(p.to, r.Message)
	return err
}
func (p plain) WithAttrs([]slog.Attr) slog.Handler { return p }
func (p plain) WithGroup(string) slog.Handler      { return p }

func source(text string) script.Source {
	tree := fstest.MapFS{"script.js": {Data: []byte("import metacache, { Fleet } from 'k6/x/metacache';\n" + text)}}
	return script.Source{Path: "script.js", ReadFile: func(name string) ([]byte, error) { return fs.ReadFile(tree, name) }}
}

// setting is what a test script runs on.
type setting struct {
	seed    uint64
	cluster reference.Config
	// prepare is called with the running cluster, when a fleet first asks for
	// it.
	prepare func(*reference.Memory)
	wrap    func(*reference.Memory) targets.Target        // shows the fleets something else
	target  func(context.Context) (targets.Target, error) // instead of the cluster
}

// play runs a script on a small cluster in a bubble of virtual time.
func play(t *testing.T, s setting, text string) *outcome {
	t.Helper()
	o := &outcome{}
	synctest.Test(t, func(t *testing.T) {
		base := targets.NewBase()
		s.cluster.Objects, s.cluster.Documents = 4, 40
		var cluster *reference.Memory
		target := s.target
		if target == nil {
			target = func(context.Context) (targets.Target, error) {
				if cluster == nil {
					var err error
					if cluster, err = reference.StartInMemory(s.cluster, base); err != nil {
						return nil, err
					}
					if s.prepare != nil {
						s.prepare(cluster)
					}
				}
				if s.wrap != nil {
					return s.wrap(cluster), nil
				}
				return cluster, nil
			}
		}
		o.module = metacache.New(metacache.Env{Base: base, Events: o, Seed: s.seed, Target: func(ctx context.Context) (targets.Target, error) {
			o.started++
			return target(ctx)
		}})
		o.program, o.err = script.Load(t.Context(), source(text), script.Config{Logger: slog.New(plain{o}),
			Modules: map[string]script.Module{metacache.ImportPath: o.module}})
		if o.err == nil {
			_, o.err = script.Execute(t.Context(), o.program, script.RunConfig{Recorder: o, Clock: base})
		}
		if err := o.module.Close(); err != nil {
			t.Error(err)
		}
		if cluster != nil {
			if err := cluster.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
	return o
}

// warmed has every node serve every object before the script begins.
func warmed(t *testing.T) func(*reference.Memory) {
	return func(m *reference.Memory) {
		top, err := m.Topology(context.Background())
		if err != nil {
			t.Error(err)
		}
		first := map[targets.Object]targets.Epoch{}
		for _, object := range top.Objects {
			first[object] = 1
		}
		for _, n := range top.Nodes {
			if n.Role == targets.RoleControl {
				continue
			}
			for m.Do(context.Background(), targets.Op{Verb: targets.VerbScan, Node: n.ID, Epochs: first}).Outcome != targets.Done {
				time.Sleep(time.Millisecond) // it refreshes
			}
		}
	}
}
