package plugin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/metachaos/metachaos/chaos"
)

// ledger holds what a guest has injected, so that it can take everything back
// without its host: when a lease lapses, and when the host is gone.
type ledger struct {
	mu         sync.Mutex
	injections map[string]*injection
}

// injection is one entry. It stays after it was reverted, so that its id is
// not injected again.
type injection struct {
	fault     chaos.Fault
	handle    chaos.Handle
	injecting chan struct{} // closed when Inject has returned
	turn      chan struct{} // holds a token while nobody reverts
	lease     *time.Timer

	reverted bool // belongs to whoever has the token
}

func newLedger() *ledger { return &ledger{injections: map[string]*injection{}} }

// inject injects, and arms the lease before it does.
func (l *ledger) inject(ctx context.Context, f chaos.Fault, h chaos.Handle) error {
	if h.Lease <= 0 {
		return fmt.Errorf("inject %q: the lease is %v; want more than 0s", h.ID, h.Lease)
	}
	in := &injection{fault: f, handle: h, injecting: make(chan struct{}), turn: make(chan struct{}, 1)}
	in.turn <- struct{}{}
	l.mu.Lock()
	if _, ok := l.injections[h.ID]; ok {
		l.mu.Unlock()
		return fmt.Errorf("inject %q: it was injected before; one injection per id", h.ID)
	}
	l.injections[h.ID] = in
	lapse := context.WithoutCancel(ctx)
	in.lease = time.AfterFunc(h.Lease, func() { in.revert(lapse) })
	l.mu.Unlock()
	defer close(in.injecting)
	return f.Inject(ctx, h)
}

func (l *ledger) get(id string) (*injection, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	in, ok := l.injections[id]
	return in, ok
}

// revertAll reverts whatever was not seen reverted, all at once, and returns
// the answers sorted by id. What ctx cuts off is answered as unknown.
func (l *ledger) revertAll(ctx context.Context) []leftover {
	l.mu.Lock()
	all := make([]*injection, 0, len(l.injections))
	for _, in := range l.injections {
		all = append(all, in)
	}
	l.mu.Unlock()
	slices.SortFunc(all, func(a, b *injection) int { return cmp.Compare(a.handle.ID, b.handle.ID) })
	out := make([]leftover, len(all))
	var wg sync.WaitGroup
	for i, in := range all {
		wg.Go(func() { out[i] = leftover{in.handle, in.revert(ctx)} })
	}
	wg.Wait()
	return out
}

type leftover struct {
	handle   chaos.Handle
	reversal chaos.Reversal
}

// revert takes the injection back, one caller at a time: the host, the lease
// and the end may come together.
func (in *injection) revert(ctx context.Context) chaos.Reversal {
	select {
	case <-in.turn:
	case <-ctx.Done():
		return chaos.Reversal{Undone: chaos.RevertUnknown, Evidence: "it is being reverted still"}
	}
	defer func() { in.turn <- struct{}{} }()
	if in.reverted {
		return in.fault.Revert(ctx, in.handle) // harmless, and probes again
	}
	limit := time.Duration(0)
	if deadline, ok := ctx.Deadline(); ok {
		limit = max(time.Second, time.Until(deadline))
	}
	rev := chaos.Undo(ctx, in.fault, in.handle, in.injecting, limit)
	if rev.Undone == chaos.Reverted {
		in.reverted = true
		in.lease.Stop()
	}
	return rev
}
