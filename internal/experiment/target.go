package experiment

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/metachaos/metachaos/chaos"
	"github.com/metachaos/metachaos/targets"
)

// lazyTarget starts the target when it is first asked for, once.
type lazyTarget struct {
	start  func(context.Context) (targets.Target, error)
	once   sync.Once
	target targets.Target
	err    error
}

func (l *lazyTarget) get(ctx context.Context) (targets.Target, error) {
	l.once.Do(func() { l.target, l.err = l.start(ctx) })
	return l.target, l.err
}

// started returns the target, or nil if nobody asked for it.
func (l *lazyTarget) started() targets.Target {
	l.once.Do(func() {})
	return l.target
}

// ownedID names what the target of a run started, in the journal.
const ownedID = "target"

// startTarget starts the target and journals what it started, so that a
// killed run leaves nothing that cannot be found.
func (e *Experiment) startTarget(ctx context.Context) (targets.Target, error) {
	t, owned, err := e.kind.Start(ctx, e.config.Plan.Target.With.Decode, e.base)
	if err != nil {
		return nil, fmt.Errorf("start target %s: %w", e.kind.Name, err)
	}
	e.owned = owned
	if err := journalTarget(e.config.Journal, t, owned, e.config.Folder); err != nil {
		return nil, errors.Join(err, t.Close(context.WithoutCancel(ctx)))
	}
	return t, nil
}

// scope says what faults may touch: what the target declares as its own.
func scope(ctx context.Context, t targets.Target) (chaos.Scope, error) {
	topology, err := t.Topology(ctx)
	if err != nil {
		return chaos.Scope{}, fmt.Errorf("read topology: %w", err)
	}
	s := chaos.Scope{Info: t.Info(), Topology: topology}
	if p, ok := t.(targets.Processes); ok {
		s.Processes = p.Processes()
	}
	return s, nil
}
