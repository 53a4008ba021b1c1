package chaos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/metachaos/metachaos/targets"
)

// fakeFault is a fault whose every step can be told how to behave.
type fakeFault struct {
	desc     Description
	validate error
	needs    []targets.Capability

	injectTakes   time.Duration
	ignoreCancel  bool // Inject runs on after ctx has ended
	injectErr     error
	planErr       error
	effectiveIn   time.Duration
	statusHangs   bool
	revertTakes   time.Duration
	revertIgnores bool // Revert runs on after ctx has ended
	reversals     []Reversal

	mu       sync.Mutex
	calls    []string
	injected time.Time
	active   bool
}

var (
	_ Fault     = (*fakeFault)(nil)
	_ StepNeeds = (*fakeFault)(nil)
)

func (f *fakeFault) Describe() Description { return f.desc }

func (f *fakeFault) Validate(Step) error { return f.validate }

func (f *fakeFault) NeedsOf(Step) ([]targets.Capability, string) { return f.needs, "" }

func (f *fakeFault) Plan(_ context.Context, s Step, _ Scope) (Handle, error) {
	f.note("plan")
	return Handle{Touches: []string{"toy " + s.ID}}, f.planErr
}

func (f *fakeFault) Inject(ctx context.Context, h Handle) error {
	f.note(fmt.Sprintf("inject lease=%v", h.Lease))
	f.mu.Lock()
	f.active, f.injected = true, time.Now()
	f.mu.Unlock()
	if f.ignoreCancel {
		ctx = context.WithoutCancel(ctx)
	}
	if !sleep(ctx, f.injectTakes) {
		return context.Cause(ctx)
	}
	return f.injectErr
}

func (f *fakeFault) Status(ctx context.Context, _ Handle) (Status, error) {
	if f.statusHangs {
		<-ctx.Done()
		time.Sleep(time.Hour) // and does not care
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.effectiveIn < 0 {
		return Status{}, errors.New("no signal")
	}
	return Status{Effective: time.Since(f.injected) >= f.effectiveIn, Evidence: "toy gauge"}, nil
}

func (f *fakeFault) Revert(ctx context.Context, _ Handle) Reversal {
	f.note("revert")
	if f.revertIgnores {
		ctx = context.WithoutCancel(ctx)
	}
	if !sleep(ctx, f.revertTakes) {
		return Reversal{Undone: RevertUnknown, Evidence: "interrupted"}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.reversals) > 0 {
		rev := f.reversals[0]
		if len(f.reversals) > 1 {
			f.reversals = f.reversals[1:]
		}
		return rev
	}
	f.active = false
	return Reversal{Undone: Reverted, Evidence: "toy is still"}
}

func (f *fakeFault) Recover(ctx context.Context, h Handle) Reversal { return f.Revert(ctx, h) }

func (f *fakeFault) note(call string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, call)
}

func (f *fakeFault) count(call string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, c := range f.calls {
		if c == call {
			n++
		}
	}
	return n
}
