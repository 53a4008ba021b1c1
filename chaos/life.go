package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// leaseGrace is what a lease allows beyond the step's own end, so that the
	// orderly revert comes first.
	leaseGrace = 10 * time.Second
	// statusPeriod is how often an injection is asked whether it is effective.
	statusPeriod = 100 * time.Millisecond
	// planLimit bounds the asking that precedes an injection.
	planLimit = 30 * time.Second
)

// life is one step's way from planned to its end.
type life struct {
	runner  *Runner
	step    Step
	fault   Fault
	instant bool
	handle  Handle
}

// leaseOf bounds an injection: its own duration and a grace, but never more
// than the guard allows. An action has only the guard.
func leaseOf(step Step, guards Guards) time.Duration {
	if step.For <= 0 {
		return guards.MaxDuration
	}
	return min(step.For+leaseGrace, guards.MaxDuration)
}

// plan works out the handle. Nothing is touched, whatever comes of it.
func (l *life) plan(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, planLimit)
	defer cancel()
	scope, err := l.runner.cfg.Scope(ctx)
	if err != nil {
		return l.failed(fmt.Errorf("read scope: %w", err), "nothing was touched")
	}
	h, err := l.fault.Plan(ctx, l.step, scope)
	if err != nil {
		return l.failed(err, "nothing was touched")
	}
	h.ID, h.Fault, h.Lease = l.step.ID, l.step.Fault, leaseOf(l.step, l.runner.cfg.Guards)
	l.handle = h
	l.record(Injection{Phase: PhasePlanned, Touches: h.Touches, Lease: h.Lease})
	return nil
}

// act does an action, which leaves nothing to take back.
func (l *life) act(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, l.handle.Lease, errLapsed)
	defer cancel()
	l.record(Injection{Phase: PhaseStarted})
	in := l.inject(ctx)
	if !in.returned(ctx) && !waitClosed(context.WithoutCancel(ctx), in.done, injectGrace) {
		return l.failed(fmt.Errorf("it has not returned: %w", context.Cause(ctx)), "")
	}
	if in.err != nil {
		return l.failed(in.err, "")
	}
	s, err := l.fault.Status(ctx, l.handle)
	if err != nil {
		s.Evidence = "done, but its effect could not be read: " + err.Error()
	}
	l.record(Injection{Phase: PhaseDone, Evidence: s.Evidence})
	return nil
}

// endure injects a fault, waits for its end, and takes it back.
func (l *life) endure(ctx context.Context) error {
	// Before the journal holds the handle nothing may be touched, and what
	// begins after that ends with undo.
	if err := l.journal(PhaseStarted); err != nil {
		return l.failed(err, "nothing was touched")
	}
	lease, release := context.WithTimeoutCause(ctx, l.handle.Lease, errLapsed)
	defer release()
	hold, end := l.hold(ctx)
	defer end()

	l.record(Injection{Phase: PhaseStarted})
	in := l.inject(lease)
	var trouble error
	note := ""
	switch {
	case !in.returned(lease):
		trouble = fmt.Errorf("cut off while injecting: %w", context.Cause(lease))
		note = trouble.Error()
	case in.err != nil:
		trouble = l.failed(in.err, "")
	default:
		note, trouble = l.watch(hold)
	}
	release() // an Inject that is still running learns that it is over
	return errors.Join(trouble, l.undo(ctx, in.done, note))
}

// injecting is a call of Inject under way.
type injecting struct {
	done chan struct{} // closed when it has returned
	err  error         // its result, once done is closed
}

func (l *life) inject(ctx context.Context) *injecting {
	in := &injecting{done: make(chan struct{})}
	go func() {
		defer close(in.done)
		in.err = l.fault.Inject(ctx, l.handle)
	}()
	return in
}

// returned waits for the call while ctx lasts.
func (in *injecting) returned(ctx context.Context) bool {
	select {
	case <-in.done:
		return true
	case <-ctx.Done():
		return waitClosed(ctx, in.done, 0)
	}
}

// Why an injection ends.
var (
	errOver   = errors.New("the step's time is over")
	errLapsed = errors.New("the lease lapsed")
)

// hold is the time that the injection lasts, inject and all.
func (l *life) hold(ctx context.Context) (context.Context, context.CancelFunc) {
	if l.handle.Lease < l.step.For {
		return context.WithTimeoutCause(ctx, l.handle.Lease, errLapsed)
	}
	return context.WithTimeoutCause(ctx, l.step.For, errOver)
}

// watch records when the fault is first seen to be effective, and waits for
// hold to end. It returns why it ended, and an error unless the step had its
// whole time.
func (l *life) watch(hold context.Context) (note string, err error) {
	unseen := l.awaitEffect(hold)
	<-hold.Done()
	cause := context.Cause(hold)
	note = cause.Error()
	if unseen != "" {
		note += "; never seen effective: " + unseen
	}
	if !errors.Is(cause, errOver) {
		err = fmt.Errorf("cut off: %w", cause)
	}
	return note, err
}

// awaitEffect polls until the fault is effective, and returns the last thing
// heard if that did not happen while hold lasted. A Status that does not
// return holds up nothing.
func (l *life) awaitEffect(hold context.Context) (unseen string) {
	type answer struct {
		Status
		err error
	}
	unseen = "its status was never told"
	for {
		told := make(chan answer, 1)
		go func() {
			s, err := l.fault.Status(hold, l.handle)
			told <- answer{s, err}
		}()
		select {
		case a := <-told:
			switch {
			case a.err != nil && hold.Err() == nil:
				unseen = a.err.Error()
			case a.err == nil && a.Effective:
				l.record(Injection{Phase: PhaseEffective, Evidence: a.Evidence})
				return ""
			case a.err == nil:
				unseen = cmp.Or(a.Evidence, unseen)
			}
		case <-hold.Done():
			return unseen
		}
		if !sleep(hold, statusPeriod) {
			return unseen
		}
	}
}

// undo takes the injection back, and lets go of the journal entry only when
// that was shown.
func (l *life) undo(ctx context.Context, injecting <-chan struct{}, note string) error {
	// The entry is there already; that its phase is out of date is no harm.
	journalErr := l.journal(PhaseReverting)
	l.record(Injection{Phase: PhaseReverting, Evidence: note})
	rev := Undo(ctx, l.fault, l.handle, injecting, l.runner.cfg.UndoLimit)
	l.record(Injection{Phase: Phase(rev.Undone), Evidence: rev.Evidence, HowTo: rev.HowTo})
	if rev.Undone != Reverted {
		return errors.Join(journalErr, l.journal(Phase(rev.Undone)),
			&StuckError{ID: l.step.ID, Fault: l.step.Fault, Reversal: rev})
	}
	return l.runner.cfg.Journal.Remove(Entry{Injection: &Pending{Handle: l.handle}})
}

func (l *life) journal(p Phase) error {
	return l.runner.cfg.Journal.Put(Entry{
		RunDir: l.runner.cfg.RunDir, Injection: &Pending{Phase: p, Handle: l.handle}})
}

// failed records and returns an error.
func (l *life) failed(err error, remark string) error {
	evidence := err.Error()
	if remark != "" {
		evidence += " (" + remark + ")"
	}
	l.record(Injection{Phase: PhaseFailed, Evidence: evidence})
	return err
}

func (l *life) record(in Injection) {
	in.ID, in.Fault, in.Instant = l.step.ID, l.step.Fault, l.instant
	l.runner.record(in)
}

// forget takes the step out of the live view.
func (l *life) forget() {
	l.runner.mu.Lock()
	defer l.runner.mu.Unlock()
	delete(l.runner.active, l.step.ID)
}
