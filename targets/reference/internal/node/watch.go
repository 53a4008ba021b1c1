package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference/internal/wal"
)

// maxQueue bounds what a subscriber may leave unread. Beyond it the stream is
// cut: a subscriber so far behind is better off with a pull.
const maxQueue = 4096

// subscriber is one push stream. Its fields but wake belong to the lock of
// the control plane.
type subscriber struct {
	client  string
	seq     uint64 // of the last message, whether it was sent or lost
	queue   []targets.Push
	wake    chan struct{}
	overrun bool
}

// enqueue numbers a message and, unless it is lost, queues it. Numbering comes
// first: a lost push leaves a hole that its subscriber can see.
func (s *subscriber) enqueue(p targets.Push, lost bool) {
	s.seq++
	if lost {
		return
	}
	if len(s.queue) >= maxQueue {
		s.overrun = true
	} else {
		p.Seq = s.seq
		s.queue = append(s.queue, p)
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Watch streams pushes to a client. The first message is a heartbeat, sent at
// once, which tells the subscriber that it will miss nothing from then on.
func (c *Control) Watch(ctx context.Context, client string, deliver func(targets.Push)) error {
	s := &subscriber{client: client, wake: make(chan struct{}, 1)}
	defer c.subscribe(s)()
	beat := time.NewTicker(c.settings.Heartbeat)
	defer beat.Stop()
	for {
		c.mu.Lock()
		queue, overrun := s.queue, s.overrun
		s.queue = nil
		c.mu.Unlock()
		for _, p := range queue {
			deliver(p)
		}
		if overrun {
			return fmt.Errorf("watch: %s left more than %d pushes unread", client, maxQueue)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-c.draining:
			return fmt.Errorf("watch: %w", ErrStopping)
		case <-s.wake:
		case <-beat.C:
			c.mu.Lock()
			s.enqueue(targets.Push{Heartbeat: true}, false)
			c.mu.Unlock()
		}
	}
}

func (c *Control) subscribe(s *subscriber) (unsubscribe func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastID++
	id := c.lastID
	c.subscribers[id] = s
	s.enqueue(targets.Push{Heartbeat: true}, false)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.subscribers, id)
	}
}

// delivery is what becomes of one push for one subscriber.
type delivery struct {
	to   *subscriber
	lost bool
}

// decide asks the rules about a push to every subscriber, and returns the
// records of it. The caller holds the lock.
func (c *Control) decide(e targets.Entry) ([]delivery, []targets.Truth) {
	p := targets.Push{Entries: []targets.Entry{e}}
	deliveries := make([]delivery, 0, len(c.subscribers))
	truths := make([]targets.Truth, 0, len(c.subscribers))
	for _, id := range slices.Sorted(maps.Keys(c.subscribers)) { // in one order, so that seeds repeat
		s := c.subscribers[id]
		lost := c.rules.drops(s.client, p)
		deliveries = append(deliveries, delivery{s, lost})
		truths = append(truths, targets.Truth{Kind: targets.TruthPush, Object: e.Object, Epoch: e.Epoch, Owner: e.Owner,
			To: s.client, Lost: lost})
	}
	return deliveries, truths
}

// synchronize tells every subscriber to let its cache expire at one instant.
func (c *Control) synchronize(in time.Duration) (reached uint64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var truths []targets.Truth
	for _, s := range c.subscribers {
		s.enqueue(targets.Push{ExpireIn: in}, false)
		truths = append(truths, targets.Truth{Kind: targets.TruthPush, To: s.client})
	}
	return uint64(len(truths)), c.record(truths...)
}

// FollowTruth delivers the records from a position of the log on, each with
// the position after it and whether more are at hand, until ctx ends or the node drains; what was recorded
// until then is delivered first.
func (c *Control) FollowTruth(ctx context.Context, from int64, deliver func(t targets.Truth, next int64, more bool) error) error {
	waiting, cancel := untilClosed(ctx, c.draining)
	defer cancel()
	for {
		waited := c.log.WaitFor(waiting, from+1)
		ended := ctx.Err() != nil // before looking at the end of the log: what comes later is not promised
		for until := c.log.End(); from < until; {
			frames, err := c.log.Read(from, tailChunk)
			if err != nil {
				return fmt.Errorf("follow truth: %w", err)
			}
			if err := deliverTruths(frames, from, deliver); err != nil {
				return err
			}
			from += int64(len(frames))
		}
		switch {
		case ended:
			return nil
		case errors.Is(waited, ErrStopping), errors.Is(waited, wal.ErrClosed):
			return fmt.Errorf("follow truth: %w", ErrStopping)
		}
	}
}

func deliverTruths(frames []byte, from int64, deliver func(targets.Truth, int64, bool) error) error {
	next := from
	for payload, err := range wal.Payloads(frames) {
		if err != nil {
			return fmt.Errorf("follow truth: %w", err)
		}
		var t targets.Truth
		if err := json.Unmarshal(payload, &t); err != nil {
			return fmt.Errorf("follow truth: %w", err)
		}
		next = wal.Next(next, payload)
		if err := deliver(t, next, next < from+int64(len(frames))); err != nil {
			return err
		}
	}
	return nil
}

// TruthEnd returns the position after the last record.
func (c *Control) TruthEnd(context.Context) (int64, error) { return c.log.End(), nil }
