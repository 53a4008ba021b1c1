package node

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/metachaos/metachaos/targets"
)

const (
	// sectionLease is how long a donor refuses writes for a migration that
	// does not go on.
	sectionLease = 5 * time.Second
	// adoptLimit bounds telling the donor of the hand-over. The truth has
	// changed already, and a donor that cannot be told forgets its entry when
	// the section lapses.
	adoptLimit = time.Second
)

// stages in the order in which a migration reaches them.
func stages() []targets.Stage {
	return []targets.Stage{targets.StageCopied, targets.StageHandedOver, targets.StageCleaned}
}

// Migrate brings the migration of an object up to a stage. A migration to
// another shard that was left half-way is settled first: given up when its
// owner has not changed yet, and cleaned when it has.
func (c *Control) Migrate(ctx context.Context, o targets.Object, to string, stage targets.Stage) (targets.Entry, error) {
	if err := c.validMigration(o, to, stage); err != nil {
		return targets.Entry{}, err
	}
	select {
	case c.turns[o] <- struct{}{}:
		defer func() { <-c.turns[o] }()
	case <-ctx.Done():
		return targets.Entry{}, fmt.Errorf("migrate %s: another migration of it is under way: %w", o, ctx.Err())
	}
	if m := c.snapshot(o); m.to != "" && m.to != to {
		if err := c.settle(ctx, m); err != nil {
			return m.entry, fmt.Errorf("settle the migration of %s to %s: %w", o, m.to, err)
		}
	}
	if m := c.snapshot(o); m.to == "" && m.entry.Owner == to {
		return m.entry, nil
	}
	for rank, next := range stages() {
		m := c.snapshot(o)
		if rank > slices.Index(stages(), stage) {
			break
		}
		if rank <= slices.Index(stages(), m.reached) {
			continue
		}
		if err := c.advance(ctx, m, to, next); err != nil {
			return m.entry, fmt.Errorf("migrate %s from %s to %s: stage %s: %w", o, m.entry.Owner, to, next, err)
		}
	}
	return c.snapshot(o).entry, nil
}

func (c *Control) validMigration(o targets.Object, to string, stage targets.Stage) error {
	if _, ok := c.turns[o]; !ok {
		return fmt.Errorf("migrate: there is no object %s; there are %s to %s", o, c.settings.Objects[0], c.settings.Objects[len(c.settings.Objects)-1])
	}
	if !slices.Contains(c.settings.Shards, to) {
		return fmt.Errorf("migrate %s: there is no shard %q; there are %s", o, to, strings.Join(c.settings.Shards, ", "))
	}
	if !slices.Contains(stages(), stage) {
		return fmt.Errorf("migrate %s: there is no stage %q; there are %v", o, stage, stages())
	}
	return nil
}

// snapshot returns a copy of the object's state. Only the holder of the turn
// changes it.
func (c *Control) snapshot(o targets.Object) entryState {
	c.mu.Lock()
	defer c.mu.Unlock()
	return *c.entries[o]
}

func (c *Control) advance(ctx context.Context, m entryState, to string, stage targets.Stage) error {
	switch stage {
	case targets.StageCopied:
		_, err := c.copyObject(ctx, m, to)
		return err
	case targets.StageHandedOver:
		return c.handOver(ctx, m, to)
	default:
		return c.clean(ctx, m)
	}
}

// copyObject holds the donor's writes and copies the documents. The section
// stays held for the hand-over. It returns the section's token.
func (c *Control) copyObject(ctx context.Context, m entryState, to string) (token string, err error) {
	ctx, cancel := context.WithTimeout(ctx, sectionLease)
	defer cancel()
	o := m.entry.Object
	donor, err := c.movers(m.entry.Owner)
	if err != nil {
		return "", err
	}
	recipient, err := c.movers(to)
	if err != nil {
		return "", err
	}
	token = rand.Text()
	if err := donor.Hold(ctx, o, token, sectionLease, false); err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, release(ctx, donor, o, token))
		}
	}()
	documents, err := donor.Export(ctx, o)
	if err != nil {
		return "", err
	}
	if err := recipient.Import(ctx, o, documents); err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t := stageRecord(m.entry, to, targets.StageCopied)
	if err := c.record(t); err != nil {
		return "", err
	}
	c.replay(t)
	c.entries[o].token = token
	return token, nil
}

// release ends the donor's section also when the migration was cancelled. If
// it cannot, the lease does.
func release(ctx context.Context, donor Mover, o targets.Object, token string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), adoptLimit)
	defer cancel()
	return donor.Release(ctx, o, token)
}

// handOver commits the new owner while the donor provably holds its writes.
func (c *Control) handOver(ctx context.Context, m entryState, to string) error {
	o := m.entry.Object
	donor, err := c.movers(m.entry.Owner)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := donor.Hold(ctx, o, m.token, sectionLease, true); err != nil {
		// The copy is out of date: the donor may have taken writes since.
		began = time.Now()
		if m.token, err = c.copyObject(ctx, m, to); err != nil {
			return err
		}
	}
	entry := targets.Entry{Object: o, Epoch: m.entry.Epoch + 1, Owner: to}
	if err := c.commit(entry, to, began.Add(sectionLease)); err != nil {
		return errors.Join(err, release(ctx, donor, o, m.token))
	}
	adopting, cancel := context.WithTimeout(context.WithoutCancel(ctx), adoptLimit)
	defer cancel()
	if donor.Adopt(adopting, entry) == nil {
		return c.recordAdoption(entry, m.entry.Owner)
	}
	return nil
}

// commit makes an entry the truth, and tells the subscribers, unless the
// donor's section may have lapsed: then nothing has happened.
func (c *Control) commit(e targets.Entry, to string, before time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !time.Now().Before(before) {
		return errors.New("the donor's critical section lapsed before the commit")
	}
	commit := targets.Truth{Kind: targets.TruthCommit, Object: e.Object, Epoch: e.Epoch, Owner: e.Owner}
	stage := stageRecord(e, to, targets.StageHandedOver)
	deliveries, pushes := c.decide(e)
	if err := c.record(append([]targets.Truth{commit, stage}, pushes...)...); err != nil {
		return err
	}
	c.replay(commit)
	c.replay(stage)
	for _, d := range deliveries {
		d.to.enqueue(targets.Push{Entries: []targets.Entry{e}}, d.lost)
	}
	return nil
}

func (c *Control) recordAdoption(e targets.Entry, shard string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.record(targets.Truth{Kind: targets.TruthGrant, Object: e.Object, Epoch: e.Epoch, Owner: e.Owner,
		To: string(PrimaryID(shard)), Cause: targets.CauseNode})
}

// clean deletes the orphans of the donor. It is told of the owner once more,
// in case it could not be told at the hand-over.
func (c *Control) clean(ctx context.Context, m entryState) error {
	donor, err := c.movers(m.previous)
	if err != nil {
		return err
	}
	if err := donor.Adopt(ctx, m.entry); err != nil {
		return err
	}
	if err := donor.Purge(ctx, m.entry.Object); err != nil {
		return err
	}
	return c.finish(m)
}

// settle ends a migration that was left half-way.
func (c *Control) settle(ctx context.Context, m entryState) error {
	if m.reached == targets.StageHandedOver {
		return c.clean(ctx, m)
	}
	donor, err := c.movers(m.entry.Owner)
	if err != nil {
		return err
	}
	recipient, err := c.movers(m.to)
	if err != nil {
		return err
	}
	// Adopting what it holds already ends the donor's section, whatever its
	// token.
	if err := errors.Join(donor.Adopt(ctx, m.entry), recipient.Purge(ctx, m.entry.Object)); err != nil {
		return err
	}
	return c.finish(m)
}

// finish records that no shard but the owner holds the object any more.
func (c *Control) finish(m entryState) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := stageRecord(m.entry, m.to, targets.StageCleaned)
	if err := c.record(t); err != nil {
		return err
	}
	c.replay(t)
	return nil
}

func stageRecord(e targets.Entry, to string, s targets.Stage) targets.Truth {
	return targets.Truth{Kind: targets.TruthStage, Object: e.Object, Epoch: e.Epoch, Owner: e.Owner, To: to, Stage: s}
}
