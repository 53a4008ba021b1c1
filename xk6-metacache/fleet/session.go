package fleet

import (
	"context"
	"errors"
	"fmt"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/xk6-metacache/client"
)

// session is the session of one client with a target that keeps the map. One
// operation at a time may use it; the others queue.
type session struct {
	of     targets.Session
	turn   chan struct{} // held by whoever uses the session
	closed bool          // guarded by turn
}

func (f *Fleet) openSessions(ctx context.Context, target targets.SelfRouting) error {
	for _, m := range f.members {
		s, err := target.Open(ctx, m.name)
		if err != nil {
			return fmt.Errorf("open session of client %s: %w", m.name, err)
		}
		m.session = &session{of: s, turn: make(chan struct{}, 1)}
	}
	return nil
}

// do waits for its turn no longer than ctx lasts. The error says that the
// operation was not begun.
func (s *session) do(ctx context.Context, op targets.Op) (targets.Reply, error) {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return targets.Reply{}, ctx.Err()
	}
	defer func() { <-s.turn }()
	if err := ctx.Err(); err != nil { // the turn came at the same moment
		return targets.Reply{}, err
	}
	if s.closed {
		return targets.Reply{}, errClosed
	}
	return s.of.Do(ctx, op), nil
}

func (s *session) close() error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.closed = true
	return s.of.Close()
}

// errClosed is what becomes of calls after Close.
var errClosed = errors.New("the fleet is closed")

// observe performs an operation through the target's own client library.
func (f *Fleet) observe(ctx context.Context, m *member, op targets.Op, r *Result) {
	reply, err := m.session.do(ctx, op)
	if err != nil {
		r.end(ctx, targets.Refused, targets.CodeUnavailable)
		return
	}
	r.finish(reply, client.Step{Outcome: reply.Outcome, Code: reply.Code})
	r.Event.HopCount = reply.Hops
	if op.Verb != targets.VerbScan {
		// The library does not say why it asked again: it is taken for a
		// redirect, as the analysis of redirects takes it.
		r.Redirects = max(0, reply.Hops-1)
	}
}
