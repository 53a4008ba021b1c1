package experiment

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/metachaos/metachaos/load/script"
	"github.com/metachaos/metachaos/results"
	"github.com/metachaos/metachaos/results/analysis"
	"github.com/metachaos/metachaos/results/stats"
	"github.com/metachaos/metachaos/targets"
	metacache "github.com/metachaos/metachaos/xk6-metacache"
)

// loadScript compiles the script, runs its init code once, and parses the
// thresholds.
func (e *Experiment) loadScript(ctx context.Context) error {
	c := e.config
	modules := maps.Clone(c.Modules)
	if modules == nil {
		modules = map[string]script.Module{}
	}
	modules[metacache.ImportPath] = e.module
	program, err := script.Load(ctx, c.Script, script.Config{
		Modules:   modules,
		Registry:  e.registry,
		Logger:    c.Logger,
		Env:       c.Env,
		Overrides: c.Overrides,
		Defaults:  c.Defaults, Console: c.Console, AllowRemote: c.AllowRemote, BaseMode: c.BaseMode,
	})
	if err != nil {
		return err
	}
	if c.CheckOptions != nil {
		if err := c.CheckOptions(program.Options()); err != nil {
			return &ConfigError{err}
		}
	}
	e.program = program
	thresholds := map[string][]analysis.Threshold{}
	for metric, list := range program.Options().Thresholds {
		for _, t := range list {
			thresholds[metric] = append(thresholds[metric], analysis.Threshold{Source: t.Source, AbortOnFail: t.AbortOnFail, DelayAbort: t.DelayAbort})
		}
	}
	if e.metrics, err = analysis.NewMetrics(e.registry, thresholds); err != nil {
		return err
	}
	for _, name := range program.Options().SummaryTrendStats {
		s, err := stats.ParseStat(name)
		if err != nil {
			return &ConfigError{err}
		}
		e.trendStats = append(e.trendStats, s)
	}
	return nil
}

// execute runs the script; started is called when its scenarios start.
func (r *run) execute(ctx context.Context, started func(at time.Duration)) (script.Result, error) {
	recorder := append(recorders{r.metrics}, r.config.Recorders...)
	if r.folder != nil {
		recorder = append(recorder, r.folder)
	}
	x := script.NewExecution(r.program, script.RunConfig{
		Recorder: recorder, Clock: r.base, Judge: r.metrics, Started: started,
	})
	r.execution.Store(x)
	return x.Run(ctx)
}

// HandleSummary calls the script's handleSummary, if it has one.
func (e *Experiment) HandleSummary(ctx context.Context, o Outcome, stdoutTTY, stderrTTY bool) (map[string][]byte, error) {
	return e.program.HandleSummary(ctx, script.HandleSummaryData{
		RootGroup: o.Summary.Root, Metrics: o.Summary.HandleSummaryMetrics(), Duration: o.Script.Elapsed,
		SetupData: o.Script.SetupData, StdoutTTY: stdoutTTY, StderrTTY: stderrTTY,
	})
}

// scriptExit is how the script ended, for the manifest.
func (r *run) scriptExit() results.ScriptExit {
	exit := results.ScriptExit{CompletedIterations: r.outcome.Script.Load.Completed, FailedIterations: r.outcome.Script.Load.Failed}
	if err := r.outcome.Err; err != nil {
		exit.Error = err.Error()
		var coded interface{ ExitCode() int }
		if errors.As(err, &coded) {
			exit.ExitCode = coded.ExitCode()
		}
	}
	return exit
}

// Base is the instant from which everything in the run counts its offsets.
func (e *Experiment) Base() targets.Base { return e.base }

// Options are the consolidated options of the script.
func (e *Experiment) Options() *script.Options { return e.program.Options() }

// Registry holds the metrics of the script.
func (e *Experiment) Registry() *results.Registry { return e.registry }

// TrendStats are the statistics of trends in the summary.
func (e *Experiment) TrendStats() []stats.Stat { return e.trendStats }

// AddRecorder has r take the samples too. It must not be called once Run was.
func (e *Experiment) AddRecorder(r results.Recorder) {
	e.config.Recorders = append(e.config.Recorders, r)
}
