package experiment

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/metachaos/metachaos/chaos"
	"github.com/metachaos/metachaos/internal/suggest"
	"github.com/metachaos/metachaos/load/script"
	"github.com/metachaos/metachaos/plans"
	"github.com/metachaos/metachaos/results"
	"github.com/metachaos/metachaos/results/analysis"
	"github.com/metachaos/metachaos/results/stats"
	"github.com/metachaos/metachaos/targets"
	metacache "github.com/metachaos/metachaos/xk6-metacache"
)

// Config is everything that a run needs from outside.
type Config struct {
	// Plan to conduct. A bare script is a plan without a timeline.
	Plan     *plans.Plan
	PlanText string
	// Script is the entry script; Overrides are options that win over its own.
	Script    script.Source
	Overrides script.Overrides
	// Defaults are options that lie under the script's own.
	Defaults script.Layer
	// AllowRemote and BaseMode are those of [script.Config].
	AllowRemote, BaseMode bool
	Seed                  uint64 // never 0
	Version               string
	// Modules that scripts can import beside k6's core and k6/x/metacache.
	Modules map[string]script.Module
	// CheckOptions reports options of the script that no module could obey; nil
	// accepts all.
	CheckOptions func(*script.Options) error
	// Kinds of targets and faults that are built in.
	Kinds  map[string]Kind
	Faults func(targets.Target) map[string]chaos.Fault
	// Journal of injections and of what targets started.
	Journal *chaos.Journal
	// Folder is where the run folder is made; it must not exist. Record makes
	// it also for a script that uses no target.
	Folder string
	Record bool
	// Env is what the script sees as __ENV.
	Env map[string]string
	// Recorders take the samples beside the run folder.
	Recorders []results.Recorder
	// Logger takes the script's console and warnings.
	Logger *slog.Logger
	// Console takes what the script prints; nil is Logger.
	Console *slog.Logger
	// Narrate is told of phases and injections as they happen. It may be called
	// by several goroutines at once.
	Narrate func(line string)
}

// Experiment is a run that has been checked and has not started.
type Experiment struct {
	config   Config
	base     targets.Base
	kind     Kind
	steps    []chaos.Step
	guards   []guard
	registry *results.Registry
	program  *script.Program
	module   *metacache.Module
	metrics  *analysis.Metrics
	tap      *tap
	target   lazyTarget
	owned    chaos.Owned
	forecast Forecast

	trendStats []stats.Stat
	// What the live view looks at while the run is under way.
	phase     atomic.Value // string
	execution atomic.Pointer[script.Execution]
	chaos     atomic.Pointer[chaos.Runner]
}

// ConfigError is a plan or option that cannot be used. Nothing was started.
type ConfigError struct{ err error }

// Error returns the cause's text.
func (e *ConfigError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *ConfigError) Unwrap() error { return e.err }

// ExitCode is that of k6 for configurations that cannot be used.
func (e *ConfigError) ExitCode() int { return 104 }

// Prepare checks everything that can be checked: the target's configuration,
// what its faults need, the expectations, the guards and the script, whose init
// code it runs. It starts nothing.
func Prepare(ctx context.Context, c Config) (*Experiment, error) {
	e := &Experiment{config: c, base: targets.NewBase(), registry: results.NewRegistry()}
	e.tap = &tap{live: &live{base: e.base}}
	e.target.start = e.startTarget
	if err := e.checkPlan(); err != nil {
		return nil, &ConfigError{err}
	}
	e.module = metacache.New(metacache.Env{Target: e.target.get, Base: e.base, Events: e.tap, Seed: c.Seed})
	if err := e.loadScript(ctx); err != nil {
		return nil, err
	}
	return e, nil
}

func (e *Experiment) checkPlan() error {
	p := e.config.Plan
	var errs []error
	kind, ok := e.config.Kinds[p.Target.Kind]
	if !ok {
		known := slices.Sorted(maps.Keys(e.config.Kinds))
		return plans.At(p.Target.With.Position(), fmt.Errorf("unknown target kind %q: %s", p.Target.Kind, suggest.Name(p.Target.Kind, known)))
	}
	e.kind = kind
	forecast, err := kind.Check(p.Target.With.Decode)
	if err != nil {
		return plans.At(p.Target.With.Position(), err)
	}
	e.forecast = forecast
	for _, s := range p.Timeline {
		e.steps = append(e.steps, chaos.Step{ID: s.ID, Fault: s.What(), At: time.Duration(s.At), For: time.Duration(s.For),
			On:     targets.Selector{Node: targets.NodeID(s.On.Node), Shard: s.On.Shard, Role: targets.Role(s.On.Role), Index: s.On.Index},
			Decode: s.With.Decode, Seed: deriveSeed(e.config.Seed, s.ID)})
	}
	errs = append(errs, e.checkSelectors()...)
	var bad chaos.StepErrors
	if err := chaos.Check(e.steps, e.config.Faults(nil), e.chaosGuards(), forecast.Offer); errors.As(err, &bad) {
		for _, b := range bad {
			errs = append(errs, plans.At(p.Timeline[b.Index].Position, b))
		}
	} else if err != nil {
		errs = append(errs, err)
	}
	for _, x := range p.Expect {
		if _, err := analysis.ParseExpectation(results.Expectation{Metric: x.Metric, Window: x.Window, Is: x.Is}); err != nil {
			errs = append(errs, plans.At(x.Position, err))
		}
	}
	for i, text := range p.Guards.AbortIf {
		g, err := parseGuard(text)
		if err != nil {
			errs = append(errs, plans.At(p.Guards.AbortPositions[i], err))
		}
		e.guards = append(e.guards, g)
	}
	return errors.Join(errs...)
}

// checkSelectors refuses steps that select no node, where the membership is
// known before the start.
func (e *Experiment) checkSelectors() (errs []error) {
	topology := e.forecast.Topology
	if len(topology.Nodes) == 0 {
		return nil
	}
	for i, s := range e.steps {
		if len(topology.Select(s.On)) > 0 {
			continue
		}
		var ids []string
		for _, n := range topology.Nodes {
			ids = append(ids, string(n.ID))
		}
		errs = append(errs, plans.At(e.config.Plan.Timeline[i].Position,
			fmt.Errorf("step %s (%s): on selects no node; there are %s", s.ID, s.Fault, strings.Join(ids, ", "))))
	}
	return errs
}

func (e *Experiment) chaosGuards() chaos.Guards {
	g := e.config.Plan.Guards
	return chaos.Guards{MaxConcurrent: g.MaxConcurrent, MaxDuration: time.Duration(g.MaxDuration)}
}

// deriveSeed gives every actor a seed of its own, from the plan's seed and the
// actor's name.
func deriveSeed(seed uint64, name string) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d/%s", seed, name)
	return h.Sum64()
}
