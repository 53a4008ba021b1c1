package wire

import (
	"sync"

	"github.com/metachaos/metachaos/load/script"
)

// Queue brings events from any goroutine to the event loop of a VU, in order.
// While it is open it keeps the iteration open. Events of an iteration that
// was cut are dropped.
type Queue struct {
	host script.Host

	mu     sync.Mutex
	events []func() error
	call   func(func() error) // what keeps the iteration open; nil while events run
	closed bool
}

// NewQueue opens a queue. It is called on the event loop.
func NewQueue(host script.Host) *Queue {
	return &Queue{host: host, call: host.RegisterCallback()}
}

// Push has f run on the event loop. It may be called from any goroutine; after
// Close it does nothing.
func (q *Queue) Push(f func() error) {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return
	}
	q.events = append(q.events, f)
	q.wake()
}

// Close lets the iteration end once the events before it have run. It may be
// called from any goroutine, and again.
func (q *Queue) Close() {
	q.mu.Lock()
	q.closed = true
	q.wake()
}

// wake hands the events to the loop. It is called with mu held and frees it
// first, as the loop may run them at once.
func (q *Queue) wake() {
	call := q.call
	q.call = nil
	q.mu.Unlock()
	if call != nil {
		call(q.run)
	}
}

// run executes the events that have come, on the loop.
func (q *Queue) run() error {
	// Registered before the events run, or the loop could end between.
	next := q.host.RegisterCallback()
	for {
		q.mu.Lock()
		if len(q.events) == 0 {
			if q.closed {
				q.mu.Unlock()
				next(func() error { return nil })
				return nil
			}
			q.call = next
			q.mu.Unlock()
			return nil
		}
		f := q.events[0]
		q.events = q.events[1:]
		q.mu.Unlock()
		if err := f(); err != nil {
			next(func() error { return nil }) // the iteration ends, and the queue with it
			q.abandon()
			return err
		}
	}
}

func (q *Queue) abandon() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed, q.events, q.call = true, nil, nil
}
