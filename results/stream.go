package results

import (
	"sync"
	"time"
)

// store is where a stream puts its records. One goroutine uses it.
type store[T any] interface {
	// write takes the records, which it must not keep.
	write(records []T)
	// flush makes what was written survive the end of this process, as far as
	// the store's own rhythm allows at that moment.
	flush(now time.Time)
	// close flushes everything and returns what became of it.
	close() (Count, error)
}

const (
	// pollInterval is how long a record stays in its mailbox at most while the
	// disk keeps up.
	pollInterval = 100 * time.Millisecond
	// flushInterval is how long written records stay in this process at most.
	flushInterval = time.Second
)

// stream carries the records of one kind from the goroutines that make them
// to the one that stores them.
type stream[T any] struct {
	box    *mailbox[T]
	closed sync.WaitGroup
	count  Count
	err    error
}

func startStream[T any](s store[T], limit int, patience time.Duration) *stream[T] {
	st := &stream[T]{box: newMailbox[T](limit, patience)}
	st.closed.Go(func() { st.run(s) })
	return st
}

func (st *stream[T]) run(s store[T]) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	var items []T
	flushed := time.Now()
	for open := true; open; {
		select {
		case <-st.box.wake:
		case <-tick.C:
		}
		items, open = st.box.take(items)
		if len(items) > 0 {
			s.write(items)
		}
		if now := time.Now(); now.Sub(flushed) >= flushInterval {
			s.flush(now)
			flushed = now
		}
	}
	st.count, st.err = s.close()
}

// close stores what is left and returns what became of all records.
func (st *stream[T]) close() (Count, error) {
	st.box.close()
	st.closed.Wait()
	count := st.count
	count.Lost += st.box.lostSoFar()
	return count, st.err
}
