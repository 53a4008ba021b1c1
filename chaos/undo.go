package chaos

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"
)

// How patient undoing is, unless the caller says otherwise.
const (
	undoLimit   = 30 * time.Second       // for all attempts together
	undoPause   = 200 * time.Millisecond // before the second attempt; doubles
	injectGrace = 5 * time.Second        // for Inject to notice that it was cancelled
)

// Undo reverts an injection whether or not ctx has ended. It first gives an
// Inject that is still running, until injecting is closed, a moment to return;
// it retries while the reversal is not clean; and it gives up after limit (0:
// 30 s) with what is known then. The answer is clean only when Inject has
// returned, for an Inject that runs on may act after the probe.
func Undo(ctx context.Context, f Fault, h Handle, injecting <-chan struct{}, limit time.Duration) Reversal {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(limit, undoLimit))
	defer cancel()
	settled := waitClosed(ctx, injecting, injectGrace)
	pause := undoPause
	for attempt := 1; ; attempt++ {
		rev := reverse(ctx, h, f.Revert)
		settled = settled || waitClosed(ctx, injecting, 0)
		if rev.Undone == Reverted && settled {
			return rev
		}
		if rev.Undone == Reverted {
			rev = Reversal{Undone: RevertUnknown,
				Evidence: "reverted, but Inject has not returned and may act again (" + rev.Evidence + ")"}
		}
		if !sleep(ctx, pause) {
			rev.Evidence = fmt.Sprintf("%s (gave up after attempt %d)", rev.Evidence, attempt)
			return withHowTo(rev, h)
		}
		settled = settled || waitClosed(ctx, injecting, 0)
		pause *= 2
	}
}

// reverse calls revert and does not wait for it beyond ctx. A call that does
// not return is not doubled by a second one: its handle may not be reverted
// twice at once.
func reverse(ctx context.Context, h Handle, revert func(context.Context, Handle) Reversal) Reversal {
	answer := make(chan Reversal, 1)
	go func() {
		rev := revert(ctx, h)
		if rev.Undone == "" {
			rev.Undone = RevertUnknown // a fault that does not say is not believed
		}
		answer <- rev
	}()
	select {
	case rev := <-answer:
		return rev
	case <-ctx.Done():
	}
	select {
	case rev := <-answer: // it noticed the end of ctx
		return rev
	case <-time.After(time.Second):
		return withHowTo(Reversal{Undone: RevertUnknown, Evidence: "the reversal has not returned"}, h)
	}
}

func withHowTo(rev Reversal, h Handle) Reversal {
	if rev.Undone != Reverted && rev.HowTo == "" {
		rev.HowTo = "run 'metachaos recover', or by hand take back: " + strings.Join(h.Touches, "; ")
	}
	return rev
}

// waitClosed reports whether c is closed, or becomes so within limit and ctx.
func waitClosed(ctx context.Context, c <-chan struct{}, limit time.Duration) bool {
	select {
	case <-c:
		return true
	default:
	}
	if limit == 0 {
		return false
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-c:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// sleep reports whether d passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
