package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/metachaos/metachaos/targets"
)

// RunnerConfig is what a runner works with. Faults, Scope, Journal, Clock and
// Record are required.
type RunnerConfig struct {
	// Faults are the faults and actions by name, bound to the target.
	Faults map[string]Fault
	// Scope says what may be touched, asked anew before each step.
	Scope func(ctx context.Context) (Scope, error)
	// Journal receives each handle before the fault acts on it.
	Journal *Journal
	// RunDir stands in the journal, for people. May be empty.
	RunDir string
	// Clock is the run's base: offsets in records count from it.
	Clock targets.Base
	// Record receives every change of an injection, one at a time and in the
	// order of their offsets. It must not block for long.
	Record func(Injection)
	Guards Guards
	// UndoLimit bounds the undoing of one injection; 0 means 30 s.
	UndoLimit time.Duration
}

// Runner drives timelines. It is safe for concurrent use.
type Runner struct {
	cfg   RunnerConfig
	slots chan struct{} // one per fault that may be active

	order  sync.Mutex // of records
	mu     sync.Mutex
	ids    map[string]bool // every id that was ever begun
	active map[string]Active
}

// Active is one injection that is under way.
type Active struct {
	ID    string
	Fault string
	Phase Phase
	Since time.Duration // the offset at which the phase began
}

// NewRunner returns a runner.
func NewRunner(cfg RunnerConfig) *Runner {
	cfg.Guards = cfg.Guards.withDefaults()
	return &Runner{
		cfg:    cfg,
		slots:  make(chan struct{}, cfg.Guards.MaxConcurrent),
		ids:    map[string]bool{},
		active: map[string]Active{},
	}
}

// Active returns what is under way now, sorted by id.
func (r *Runner) Active() []Active {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Active
	for _, a := range r.active {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b Active) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// Run drives the steps, whose At counts from start, itself an offset from the
// clock's base. It returns when the last step has ended and everything is
// taken back, or when ctx has ended and everything is taken back; taking back
// does not end with ctx.
//
// A step that fails does not stop the others. A fault that cannot be shown to
// be reverted lets no further step begin. The error holds one [StepError] per
// step that failed or was cut off; those of faults that may still be there hold
// a [StuckError] (see [Stuck]), and their journal entries stay.
func (r *Runner) Run(ctx context.Context, start time.Duration, steps []Step) error {
	begin, halt := context.WithCancelCause(ctx)
	defer halt(nil)
	errs := make([]error, len(steps))
	var wg sync.WaitGroup
	for i, step := range steps {
		wg.Go(func() {
			err := r.step(ctx, begin, start, step)
			if err == nil {
				return
			}
			if len(Stuck(err)) > 0 {
				halt(fmt.Errorf("step %s could not be reverted", step.ID))
			}
			errs[i] = &StepError{Index: i, ID: step.ID, Fault: step.Fault, Err: err}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// step waits for its moment while begin lasts, and then lives while ctx lasts.
func (r *Runner) step(ctx, begin context.Context, start time.Duration, step Step) error {
	notBegun := func() error { return fmt.Errorf("not begun: %w", context.Cause(begin)) }
	if !sleep(begin, start+step.At-r.cfg.Clock.Now()) {
		return notBegun()
	}
	fault, ok := r.cfg.Faults[step.Fault]
	if !ok {
		return fmt.Errorf("no fault or action is called %q", step.Fault)
	}
	instant := fault.Describe().Instant
	if !instant {
		// The timeline was checked to fit; only a slow revert makes this wait.
		select {
		case r.slots <- struct{}{}:
			defer func() { <-r.slots }()
		case <-begin.Done():
			return notBegun()
		}
	}
	if begin.Err() != nil {
		return notBegun()
	}
	if err := r.claim(step.ID); err != nil {
		return err
	}
	l := &life{runner: r, step: step, fault: fault, instant: instant}
	defer l.forget()
	if err := l.plan(ctx); err != nil {
		return err
	}
	if instant {
		return l.act(ctx)
	}
	return l.endure(ctx)
}

// claim refuses an id that was begun before: injecting twice would lose the
// pre-image of the first.
func (r *Runner) claim(id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ids[id] {
		return fmt.Errorf("id %q was injected before: one injection per id", id)
	}
	r.ids[id] = true
	return nil
}

// record stamps and passes on one record. Stamping under the lock keeps the
// records in the order of their offsets.
func (r *Runner) record(in Injection) {
	r.order.Lock()
	defer r.order.Unlock()
	in.At = r.cfg.Clock.Now()
	r.mu.Lock()
	r.active[in.ID] = Active{ID: in.ID, Fault: in.Fault, Phase: in.Phase, Since: in.At}
	r.mu.Unlock()
	// Without the lock of the state: a recorder may ask what is active, or wait
	// for somebody who does.
	r.cfg.Record(in)
}
