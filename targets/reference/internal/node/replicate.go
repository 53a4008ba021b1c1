package node

import (
	"context"
	"fmt"
	"time"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference/internal/wal"
)

const (
	tailChunk  = 256 << 10              // bytes a follower is given at once
	tailRetry  = 50 * time.Millisecond  // between two attempts to follow
	quorumWait = 500 * time.Millisecond // for followers beyond the majority
)

// Tail streams the primary's log to a follower.
func (d *Data) Tail(ctx context.Context, follower targets.NodeID, from int64, deliver func(frames []byte) error) error {
	if err := d.needPrimary("tail"); err != nil {
		return err
	}
	ctx, cancel := untilClosed(ctx, d.draining)
	defer cancel()
	d.acknowledge(follower, from)
	defer d.forget(follower)
	for {
		if err := d.log.WaitFor(ctx, from+1); err != nil {
			return fmt.Errorf("tail: %w", err)
		}
		frames, err := d.log.Read(from, tailChunk)
		if err != nil {
			return fmt.Errorf("tail: %w", err)
		}
		if err := deliver(frames); err != nil {
			return err
		}
		from += int64(len(frames))
		d.acknowledge(follower, from)
	}
}

// untilClosed returns a context that ends also when done is closed.
func untilClosed(ctx context.Context, done <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-done:
			cancel(ErrStopping)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

func (d *Data) acknowledge(follower targets.NodeID, position int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.followers[follower] = position
	d.wakeAcked()
}

func (d *Data) forget(follower targets.NodeID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.followers, follower)
	d.wakeAcked()
}

func (d *Data) wakeAcked() {
	close(d.acked)
	d.acked = make(chan struct{})
}

// awaitReplication returns once every follower that is connected has the
// position. After a moment a majority of the shard is enough, so that one
// stopped secondary does not hold up a migration.
func (d *Data) awaitReplication(ctx context.Context, position int64) error {
	patience := time.NewTimer(quorumWait)
	defer patience.Stop()
	impatient := false
	for {
		d.mu.RLock()
		have, behind, acked := 1, 0, d.acked
		for _, p := range d.followers {
			if p >= position {
				have++
			} else {
				behind++
			}
		}
		d.mu.RUnlock()
		if have > d.settings.Replicas/2 && (behind == 0 || impatient) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for replication (%d of %d nodes have it): %w", have, d.settings.Replicas, ctx.Err())
		case <-d.draining:
			return ErrStopping
		case <-patience.C:
			impatient = true
		case <-acked:
		}
	}
}

// follow tails the primary, again and again, until ctx ends.
func (d *Data) follow(ctx context.Context) {
	for ctx.Err() == nil {
		// Whatever ends the stream, the next attempt begins where the local
		// log ends, so the reason does not matter.
		_ = d.primary.Tail(ctx, d.self.ID, d.log.End(), d.replicate)
		select {
		case <-ctx.Done():
		case <-time.After(tailRetry):
		}
	}
}

// replicate appends what the primary logged and applies it. A metadata write
// updates an object that the ownership list holds already; it never ends the
// ignorance of an object that is unknown, since only a refresh shows that the
// local copy is current.
func (d *Data) replicate(frames []byte) error {
	var records []record
	for payload, err := range wal.Payloads(frames) {
		if err != nil {
			return fmt.Errorf("replicate: %w", err)
		}
		r, err := decodeRecord(payload)
		if err != nil {
			return fmt.Errorf("replicate: %w", err)
		}
		records = append(records, r)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	// The lock covers both the log and the state: whoever saw a position of the
	// log and then takes the lock finds the state that belongs to it.
	if _, err := d.log.AppendFrames(frames); err != nil {
		return fmt.Errorf("replicate: %w", err)
	}
	wasSeeded := d.state.seeded
	for _, r := range records {
		d.state.apply(r)
		if r.kind != recordEntry {
			continue
		}
		if _, known := d.list[r.object]; known {
			d.learn(targets.Entry{Object: r.object, Epoch: r.epoch, Owner: r.owner})
		}
	}
	if d.state.seeded && !wasSeeded {
		close(d.ready)
	}
	return nil
}
