package experiment

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/metachaos/metachaos/chaos"
	"github.com/metachaos/metachaos/load/script"
	"github.com/metachaos/metachaos/results"
	"github.com/metachaos/metachaos/results/analysis"
	"github.com/metachaos/metachaos/targets"
)

// Outcome is how a run went; the record in the folder says what it showed.
type Outcome struct {
	Folder string
	// Recorded is set when the folder holds a record to judge. A bare k6 script
	// leaves none unless it is asked for.
	Recorded bool
	Summary  analysis.Summary // of the script's metrics
	Script   script.Result
	// Err is what ended the script other than the end of its load.
	Err error
	// Stuck are the faults that could not be shown to be reverted.
	Stuck []*chaos.StuckError
	// Interrupted is set when ctx ended the run, and Reason says by what.
	Interrupted bool
	Reason      string
}

// closeLimit bounds each step of taking the run down.
const closeLimit = 15 * time.Second

// run is a run under way.
type run struct {
	*Experiment
	folder  *results.Folder
	outcome Outcome
	// observers are the loops that record beside the load.
	observers     sync.WaitGroup
	stopObservers context.CancelFunc
	loadStart     time.Duration
	loadEnd       time.Duration
	topology      targets.Topology
}

// Run conducts the experiment. When ctx ends, the load stops, every fault is
// reverted, and what was measured is kept. An error means that there is no
// record to judge.
func (e *Experiment) Run(ctx context.Context) (Outcome, error) {
	r := &run{Experiment: e}
	if e.usesTarget() || e.config.Record {
		folder, err := results.Create(e.config.Folder, e.manifest())
		if err != nil {
			return r.outcome, err
		}
		r.folder = folder
		r.outcome.Folder, r.outcome.Recorded = e.config.Folder, true
		e.tap.open(folder)
	}
	startErr := r.start(ctx)
	if startErr == nil {
		r.play(ctx)
	}
	closeErr := r.close(ctx)
	if startErr != nil {
		r.outcome.Recorded = false
		return r.outcome, errors.Join(startErr, closeErr)
	}
	return r.outcome, closeErr
}

// start starts the target, what observes it, and the fleets.
func (r *run) start(ctx context.Context) error {
	observing, stop := context.WithCancel(context.WithoutCancel(ctx))
	r.stopObservers = stop
	if !r.usesTarget() {
		return nil
	}
	r.enter("starting target " + r.kind.Name)
	t, err := r.target.get(ctx)
	if err != nil {
		return err
	}
	if r.topology, err = t.Topology(ctx); err != nil {
		return fmt.Errorf("read topology: %w", err)
	}
	if log, ok := t.(targets.TruthLog); ok {
		r.observers.Go(func() {
			if err := log.FollowTruth(observing, r.folder.Truth); err != nil && observing.Err() == nil {
				r.narrate("the truth log broke: %v", err)
			}
		})
	}
	r.observers.Go(func() {
		watchHost(observing, r.base, func() []targets.Process {
			if p, ok := t.(targets.Processes); ok {
				return p.Processes()
			}
			return nil
		}, r.folder.Host)
	})
	if err := r.module.Start(ctx); err != nil {
		return fmt.Errorf("start fleets: %w", err)
	}
	return nil
}

// usesTarget reports whether the run needs a target: a bare k6 script does
// not.
func (e *Experiment) usesTarget() bool {
	return len(e.steps) > 0 || len(e.config.Plan.Expect) > 0 || e.module.Fleets() > 0
}

// play runs load and timeline side by side until the load is over.
func (r *run) play(ctx context.Context) {
	playing, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var timeline sync.WaitGroup
	started := make(chan struct{})
	timeline.Go(func() {
		select {
		case <-started:
			r.runTimeline(playing)
		case <-playing.Done():
		}
	})
	var guards sync.WaitGroup
	guards.Go(func() {
		watchGuards(playing, r.guards, r.tap.live, func(g guard) {
			r.narrate("%v", g)
			stop(g)
		})
	})
	r.enter("starting virtual users")
	result, err := r.execute(playing, func(at time.Duration) {
		r.loadStart = at
		r.enter("load")
		close(started)
	})
	r.loadEnd = r.base.Now()
	if cause := context.Cause(playing); cause != nil {
		r.outcome.Interrupted, r.outcome.Reason = true, cause.Error()
	}
	// The load is over: faults that are still active have nothing to disturb.
	stop(errLoadOver)
	timeline.Wait()
	guards.Wait()
	var tripped guard
	if errors.As(err, &tripped) {
		err = nil // the verdict says so: the run was not complete
	}
	r.outcome.Script, r.outcome.Err = result, err
	r.outcome.Summary = r.metrics.Summary(r.loadEnd-r.loadStart, r.trendStats...)
}

var errLoadOver = errors.New("the load is over")

func (r *run) runTimeline(ctx context.Context) {
	t, err := r.target.get(ctx)
	if err != nil || len(r.steps) == 0 {
		return
	}
	runner := chaos.NewRunner(chaos.RunnerConfig{
		Faults:  r.config.Faults(t),
		Scope:   func(ctx context.Context) (chaos.Scope, error) { return scope(ctx, t) },
		Journal: r.config.Journal,
		RunDir:  r.config.Folder,
		Clock:   r.base,
		Guards:  r.chaosGuards(),
		Record: func(in chaos.Injection) {
			r.folder.Injection(in)
			r.narrateInjection(in)
			if in.Phase == chaos.PhaseDone {
				// An action may have started new processes.
				if err := journalTarget(r.config.Journal, t, r.owned, r.config.Folder); err != nil {
					r.narrate("%v", err)
				}
			}
		},
	})
	r.chaos.Store(runner)
	err = runner.Run(ctx, r.loadStart, r.steps)
	r.outcome.Stuck = chaos.Stuck(err)
}

// close takes everything down in the opposite order of its start, whatever
// has happened, and finishes the record.
func (r *run) close(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	r.enter("closing")
	var errs []error
	if err := r.module.Close(); err != nil {
		errs = append(errs, fmt.Errorf("close fleets: %w", err))
	}
	r.stopObservers()
	r.observers.Wait()
	if t := r.target.started(); t != nil {
		errs = append(errs, closeTarget(ctx, t, r.config.Journal))
	}
	if r.folder != nil {
		if err := r.folder.Close(r.finish); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
