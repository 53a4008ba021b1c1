package output

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metachaos/metachaos/results"
)

const (
	queuedBatches = 4096
	// patience is how long the load waits for an output that is stuck. It waits
	// once: until the output takes again, samples that find no room are lost.
	patience = 30 * time.Second
)

// queue carries batches of samples from the goroutines that record them to
// the one that writes them.
type queue struct {
	batches  chan []results.Sample
	patience time.Duration
	stalled  atomic.Bool
	lost     atomic.Uint64

	mu     sync.RWMutex // held for reading while a batch is handed over
	closed bool
}

func newQueue(capacity int, patience time.Duration) *queue {
	return &queue{batches: make(chan []results.Sample, capacity), patience: patience}
}

// put hands over a copy of the samples.
func (q *queue) put(samples []results.Sample) {
	if len(samples) == 0 {
		return
	}
	q.mu.RLock()
	defer q.mu.RUnlock()
	if q.closed || !q.send(slices.Clone(samples)) {
		q.lost.Add(uint64(len(samples)))
	}
}

func (q *queue) send(batch []results.Sample) bool {
	select {
	case q.batches <- batch:
		q.stalled.Store(false)
		return true
	default:
	}
	if q.stalled.Load() {
		return false
	}
	timer := time.NewTimer(q.patience)
	defer timer.Stop()
	select {
	case q.batches <- batch:
		return true
	case <-timer.C:
		q.stalled.Store(true)
		return false
	}
}

// close lets nothing more in; the receiver sees the end after what is queued.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.closed = true
		close(q.batches)
	}
}
