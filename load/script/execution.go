package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/metachaos/metachaos/load"
	"github.com/metachaos/metachaos/results"
)

// Judge evaluates thresholds in the middle of a run.
type Judge interface {
	// Crossed returns the first threshold that is crossed and asks to abort
	// the run, as people read it, or the empty string.
	Crossed(elapsed time.Duration) string
}

// RunConfig is how a program is executed.
type RunConfig struct {
	// Recorder takes all samples. It must not keep the slice that it is given.
	Recorder results.Recorder
	// Clock tells the offsets of the samples.
	Clock Clock
	// Judge is asked every two seconds; nil never aborts.
	Judge Judge
	// Started is called when the scenarios start, with that offset; nil is
	// allowed.
	Started func(at time.Duration)
}

// Phase is a part of a run.
type Phase string

// The phases, in their order.
const (
	PhaseInit     Phase = "init"
	PhaseSetup    Phase = "setup"
	PhaseRunning  Phase = "running"
	PhaseTeardown Phase = "teardown"
	PhaseDone     Phase = "done"
)

// Live is the state of a run at one moment.
type Live struct {
	Phase   Phase
	Elapsed time.Duration // since the scenarios started
	Load    load.Snapshot
}

// Result is what became of a run.
type Result struct {
	// Started and Elapsed are when the scenarios started, as an offset from
	// the base of the clock, and how long they took.
	Started, Elapsed time.Duration
	// Load counts iterations: completed (of them failed), interrupted, dropped.
	Load load.Snapshot
	// SetupData is what setup returned, as JSON; nil without.
	SetupData json.RawMessage
	// SetupDone tells whether the run got as far as its scenarios.
	SetupDone bool
}

// Execution is one run of a program.
type Execution struct {
	program      *Program
	cfg          RunConfig
	scenarios    map[string]*Scenario
	scenarioTags map[string]*results.Tags
	setupData    json.RawMessage
	cancel       context.CancelCauseFunc // ends the scenarios

	mu  sync.Mutex
	vms []*vm // of all VUs

	phase   atomic.Value // Phase
	ready   atomic.Int64 // VUs that were made before the scenarios
	runner  atomic.Pointer[load.Runner]
	started atomic.Pointer[time.Time]
	took    atomic.Int64 // of the scenarios, once they have ended
	failed  atomic.Pointer[string]
}

// Intervals at which a run looks at itself.
const (
	gaugeEvery = time.Second
	judgeEvery = 2 * time.Second
)

// NewExecution prepares a run of a program.
func NewExecution(p *Program, cfg RunConfig) *Execution {
	x := &Execution{program: p, cfg: cfg, scenarios: map[string]*Scenario{}, scenarioTags: map[string]*results.Tags{},
		cancel: func(error) {}}
	x.phase.Store(PhaseInit)
	for i := range p.options.Scenarios {
		s := &p.options.Scenarios[i]
		x.scenarios[s.Name] = s
		tags := p.stageTags("").Map()
		maps.Copy(tags, s.Tags)
		if p.tagged("scenario") {
			tags["scenario"] = s.Name
		}
		x.scenarioTags[s.Name] = p.registry.Tags(tags)
	}
	return x
}

// Execute runs a program: [NewExecution] and [Execution.Run].
func Execute(ctx context.Context, p *Program, cfg RunConfig) (Result, error) {
	return NewExecution(p, cfg).Run(ctx)
}

// Live returns the state of the run. It may be called at any time.
func (x *Execution) Live() Live {
	l := Live{Phase: x.phase.Load().(Phase)}
	if took := x.took.Load(); took > 0 {
		l.Elapsed = time.Duration(took)
	} else if t := x.started.Load(); t != nil {
		l.Elapsed = time.Since(*t)
	}
	if r := x.runner.Load(); r != nil {
		l.Load = r.Snapshot()
	} else {
		l.Load.Initialized = int(x.ready.Load())
	}
	return l
}

// markFailed makes the run exit as failed, at its end.
func (x *Execution) markFailed(reason string) {
	if x.failed.CompareAndSwap(nil, &reason) {
		x.program.cfg.Logger.Error("test marked as failed: "+reason, "source", "script")
	}
}

// Run initialises the VUs and runs setup, the scenarios and teardown. When
// ctx ends while the scenarios run, iterations are interrupted and teardown
// still runs, under its own time limit. The result is valid also with an
// error, which brings an exit status along: see [Error]. It is called once.
func (x *Execution) Run(ctx context.Context) (Result, error) {
	defer x.phase.Store(PhaseDone)
	defer x.endVUs()
	scenarioCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	x.cancel = cancel
	var res Result
	runner, err := x.prepare(scenarioCtx)
	if err != nil {
		return res, x.final(ctx, err)
	}
	x.phase.Store(PhaseSetup)
	if res.SetupData, err = x.setup(scenarioCtx); err != nil {
		return res, x.final(ctx, err)
	}
	x.setupData = res.SetupData
	res.SetupDone = true
	x.phase.Store(PhaseRunning)
	res.Started = x.cfg.Clock.Now()
	if x.cfg.Started != nil {
		x.cfg.Started(res.Started)
	}
	err = x.play(scenarioCtx, runner)
	res.Elapsed, res.Load = time.Duration(x.took.Load()), runner.Snapshot()
	x.phase.Store(PhaseTeardown)
	if teardownErr := x.teardown(context.WithoutCancel(ctx)); teardownErr != nil {
		return res, teardownErr // more telling than a crossed threshold
	}
	return res, x.final(ctx, err)
}

// endVUs lets all VUs close what they keep open. No iteration runs any more.
func (x *Execution) endVUs() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, v := range x.vms {
		v.end()
	}
}

// final picks the error of the run: what was given, or why ctx ended, or that
// the script marked the test as failed.
func (x *Execution) final(ctx context.Context, err error) error {
	if err == nil && ctx.Err() != nil || errors.Is(err, load.ErrInterrupted) && ctx.Err() != nil {
		err = withCode(ExitInterrupted, fmt.Errorf("run was stopped: %w", context.Cause(ctx)))
	}
	if reason := x.failed.Load(); err == nil && reason != nil {
		err = errorf(ExitMarkedFailed, "test marked as failed: %s", *reason)
	}
	return err
}

// prepare makes the VUs, as many at once as there are processors.
func (x *Execution) prepare(ctx context.Context) (*load.Runner, error) {
	scenarios := x.scenariosOfShare()
	ready, _ := load.VUs(scenarios)
	vus := make([]load.VU, ready)
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(initialisers())
	for i := range vus {
		group.Go(func() error {
			vu, err := x.NewVU(groupCtx, i+1)
			vus[i] = vu
			x.ready.Add(1)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	next := ready
	runner, err := load.New(load.Config{Scenarios: scenarios, VUs: vus, Dropped: x.dropped,
		NewVU: func(ctx context.Context) (load.VU, error) { // called by one goroutine at a time
			next++
			return x.NewVU(ctx, next)
		},
		Failed: func(err error) { x.program.cfg.Logger.Error("a further VU could not be made: " + Trace(err)) },
	})
	if err != nil {
		return nil, withCode(ExitConfig, err)
	}
	x.runner.Store(runner)
	return runner, nil
}

func (x *Execution) dropped(scenario string, n uint64) {
	x.cfg.Recorder.Record(results.Sample{At: x.cfg.Clock.Now(), Metric: x.program.builtin.dropped,
		Tags: x.scenarioTags[scenario], Value: float64(n)})
}

// play runs the scenarios beside the ticking of gauges and thresholds, and
// returns why they were cut short.
func (x *Execution) play(ctx context.Context, runner *load.Runner) error {
	b := &x.program.builtin
	x.record(results.Sample{Metric: b.dataSent}, results.Sample{Metric: b.dataReceived})
	now := time.Now()
	x.started.Store(&now)
	tickCtx, stop := context.WithCancel(ctx)
	ticking := make(chan struct{})
	go func() {
		defer close(ticking)
		x.tick(tickCtx, runner, now)
	}()
	runner.Run(ctx)
	x.took.Store(int64(max(1, time.Since(now))))
	stop()
	<-ticking
	var coded *Error
	if errors.As(causeOf(ctx), &coded) { // an abort; a stop from outside is judged by final
		return coded
	}
	return nil
}

// tick records the numbers of VUs and asks the judge until ctx ends.
func (x *Execution) tick(ctx context.Context, runner *load.Runner, start time.Time) {
	gauges, judgement := time.NewTicker(gaugeEvery), time.NewTicker(judgeEvery)
	defer gauges.Stop()
	defer judgement.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-gauges.C:
			s := runner.Snapshot()
			x.record(results.Sample{Metric: x.program.builtin.vus, Value: float64(s.Active)},
				results.Sample{Metric: x.program.builtin.vusMax, Value: float64(s.Initialized)})
		case <-judgement.C:
			if x.cfg.Judge == nil {
				continue
			}
			if crossed := x.cfg.Judge.Crossed(time.Since(start)); crossed != "" {
				x.cancel(errorf(ExitThreshold, "test aborted: threshold crossed: %s", crossed))
			}
		}
	}
}

// record adds samples of the run as a whole.
func (x *Execution) record(samples ...results.Sample) {
	for i := range samples {
		samples[i].At, samples[i].Tags = x.cfg.Clock.Now(), x.program.runTags
	}
	x.cfg.Recorder.Record(samples...)
}

// initialisers is how many VUs are initialised at once.
func initialisers() int { return max(1, runtime.GOMAXPROCS(0)) }
