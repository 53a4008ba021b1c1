package experiment

import (
	"context"
	"errors"
	"fmt"

	"github.com/metachaos/metachaos/chaos"
	"github.com/metachaos/metachaos/targets"
)

// Held is a target that is kept up without a run.
type Held struct {
	Topology targets.Topology
	target   targets.Target
	journal  *chaos.Journal
}

// Hold starts a target and journals what it started.
func Hold(ctx context.Context, kind Kind, decode func(into any) error, j *chaos.Journal) (*Held, error) {
	t, owned, err := kind.Start(ctx, decode, targets.NewBase())
	if err != nil {
		return nil, fmt.Errorf("start target %s: %w", kind.Name, err)
	}
	h := &Held{target: t, journal: j}
	err = journalTarget(j, t, owned, "")
	if err == nil {
		h.Topology, err = t.Topology(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, h.Close(context.WithoutCancel(ctx)))
	}
	return h, nil
}

// Close takes the target down.
func (h *Held) Close(ctx context.Context) error { return closeTarget(ctx, h.target, h.journal) }

// journalTarget writes what a target has started by now.
func journalTarget(j *chaos.Journal, t targets.Target, owned chaos.Owned, runDir string) error {
	owned.ID = ownedID
	if p, ok := t.(targets.Processes); ok {
		owned.Processes = p.Processes()
	}
	if err := j.Put(chaos.Entry{RunDir: runDir, Owned: &owned}); err != nil {
		return fmt.Errorf("journal target: %w", err)
	}
	return nil
}

// closeTarget takes a target down and, if nothing of it is left, forgets it.
func closeTarget(ctx context.Context, t targets.Target, j *chaos.Journal) error {
	ctx, cancel := context.WithTimeout(ctx, closeLimit)
	defer cancel()
	if err := t.Close(ctx); err != nil {
		return fmt.Errorf("close target: %w", err)
	}
	return j.Remove(chaos.Entry{Owned: &chaos.Owned{ID: ownedID}})
}
