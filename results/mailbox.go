package results

import (
	"sync"
	"time"
)

// mailbox is a bounded queue from many senders to one receiver. Senders
// append under one short lock and the receiver takes everything at once, so
// that a record costs its sender little more than a copy.
//
// A sender that finds the mailbox full waits. Once the receiver has made no
// room for the length of patience, senders lose what does not fit, counted,
// until it takes again: a stuck disk slows the load once, not at every record.
type mailbox[T any] struct {
	limit    int
	patience time.Duration
	wake     chan struct{} // holds a token when the receiver should not wait

	mu      sync.Mutex
	items   []T
	room    chan struct{} // closed when the receiver takes; nil without waiting senders
	stalled time.Time     // when the mailbox became full; zero while it is not
	closed  bool
	lost    uint64
}

func newMailbox[T any](limit int, patience time.Duration) *mailbox[T] {
	return &mailbox[T]{limit: limit, patience: patience, wake: make(chan struct{}, 1)}
}

// put hands items over; they are copied.
func (m *mailbox[T]) put(items ...T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for {
		n := min(len(items), m.limit-len(m.items))
		if m.closed {
			n = 0
		}
		m.items = append(m.items, items[:n]...)
		items = items[n:]
		if len(m.items) > m.limit/2 {
			m.nudge()
		}
		if len(items) == 0 {
			return
		}
		if m.closed || !m.awaitRoom() {
			m.lost += uint64(len(items))
			return
		}
	}
}

// nudge makes the receiver take soon.
func (m *mailbox[T]) nudge() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// awaitRoom releases the lock until the receiver has taken and reports
// whether it did so in time.
func (m *mailbox[T]) awaitRoom() bool {
	if m.stalled.IsZero() {
		m.stalled = time.Now()
	}
	left := m.patience - time.Since(m.stalled)
	if left <= 0 {
		return false
	}
	if m.room == nil {
		m.room = make(chan struct{})
	}
	room := m.room
	m.mu.Unlock()
	defer m.mu.Lock()
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-room:
		return true
	case <-timer.C:
		return false
	}
}

// take returns everything in the mailbox and whether it is still open. The
// mailbox uses spare, an earlier result, for what comes next.
func (m *mailbox[T]) take(spare []T) (items []T, open bool) {
	clear(spare) // so that nothing handed over earlier stays alive
	m.mu.Lock()
	defer m.mu.Unlock()
	items, m.items = m.items, spare[:0]
	m.stalled = time.Time{}
	if m.room != nil {
		close(m.room)
		m.room = nil
	}
	return items, !m.closed
}

// close lets nothing more in. What is put afterwards counts as lost.
func (m *mailbox[T]) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.nudge()
}

func (m *mailbox[T]) lostSoFar() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lost
}
