package fleet

import (
	"context"
	"sync"

	"github.com/metachaos/metachaos/targets"
)

// flights lets pulls of one object that happen at the same time share a call
// (singleflight). A call lives as long as the fleet, not as long as the pull
// that began it: a client that gives up must not fail the others.
type flights struct {
	work    chan *flight
	stopped chan struct{}

	mu    sync.Mutex
	inAir map[targets.Object]*flight // the zero object stands for all objects
}

// flight is one call under way. Its result may be read once done is closed.
type flight struct {
	of      targets.Object
	request targets.Fetch
	done    chan struct{}
	entries []targets.Entry
	err     error
}

func newFlights() *flights {
	return &flights{work: make(chan *flight), stopped: make(chan struct{}), inAir: map[targets.Object]*flight{}}
}

// run flies what fetch begins, until ctx ends.
func (f *flights) run(ctx context.Context, call func(context.Context, targets.Fetch) ([]targets.Entry, error)) {
	var all sync.WaitGroup
	defer close(f.stopped)
	defer all.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case one := <-f.work:
			all.Go(func() {
				one.entries, one.err = call(ctx, one.request)
				f.mu.Lock()
				delete(f.inAir, one.of)
				f.mu.Unlock()
				close(one.done)
			})
		}
	}
}

// fetch waits for the flight of an object and begins it if there is none.
// shared reports that another pull began it.
func (f *flights) fetch(ctx context.Context, of targets.Object, r targets.Fetch) (entries []targets.Entry, shared bool, err error) {
	f.mu.Lock()
	one, shared := f.inAir[of]
	if !shared {
		one = &flight{of: of, request: r, done: make(chan struct{})}
		f.inAir[of] = one
	}
	f.mu.Unlock()
	if !shared {
		select {
		case f.work <- one: // run takes it at once
		case <-f.stopped:
			return nil, false, errClosed
		}
	}
	select {
	case <-one.done:
		return one.entries, shared, one.err
	case <-ctx.Done():
		return nil, shared, context.Cause(ctx)
	case <-f.stopped:
		return nil, shared, errClosed
	}
}
