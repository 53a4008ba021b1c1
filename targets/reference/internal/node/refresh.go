package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/metachaos/metachaos/targets"
)

// flights makes sure that each object is refreshed at most once at a time.
type flights struct {
	work    chan targets.Object // never full: one flight per object
	stopped chan struct{}

	mu     sync.Mutex
	inAir  map[targets.Object]*flight
	failed map[targets.Object]string // how the last flight failed, for people
}

// flight is one refresh under way. The result may be read once done is closed.
type flight struct {
	done     chan struct{}
	position int64 // of the write, on a primary
	err      error
}

func newFlights(objects int) *flights {
	return &flights{work: make(chan targets.Object, objects), stopped: make(chan struct{}),
		inAir: map[targets.Object]*flight{}, failed: map[targets.Object]string{}}
}

// start returns the flight of the object and begins one if there is none.
func (f *flights) start(o targets.Object) *flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	if running, ok := f.inAir[o]; ok {
		return running
	}
	made := &flight{done: make(chan struct{})}
	f.inAir[o] = made
	f.work <- o
	return made
}

// run flies what start asks for until ctx ends. The flights live as long as
// the node, not as long as the request that happened to be first.
func (f *flights) run(ctx context.Context, limit time.Duration, refresh func(context.Context, targets.Object) (int64, error)) {
	var all sync.WaitGroup
	defer close(f.stopped)
	defer all.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case o := <-f.work:
			all.Go(func() {
				started := time.Now()
				limited, cancel := context.WithTimeout(ctx, limit)
				defer cancel()
				position, err := refresh(limited, o)
				if err != nil {
					err = fmt.Errorf("refresh %s failed after %v: %w", o, time.Since(started).Round(time.Millisecond), err)
				}
				f.land(o, position, err)
			})
		}
	}
}

func (f *flights) land(o targets.Object, position int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	landed := f.inAir[o]
	delete(f.inAir, o)
	delete(f.failed, o)
	if err != nil {
		f.failed[o] = err.Error()
	}
	landed.position, landed.err = position, err
	close(landed.done)
}

// lastFailure says how the last refresh failed, or nothing.
func (f *flights) lastFailure(o targets.Object) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed[o]
}

// wait returns the result of a flight.
func (f *flights) wait(ctx context.Context, fl *flight) (int64, error) {
	select {
	case <-fl.done:
		return fl.position, fl.err
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-f.stopped:
		return 0, ErrStopping
	}
}

// refresh gets the entry of the object into the ownership list, in the way
// that the node's role and the settings say.
func (d *Data) refresh(ctx context.Context, o targets.Object) (int64, error) {
	switch {
	case d.isPrimary():
		return d.refreshAndPersist(ctx, o)
	case d.settings.Refresh == Direct:
		e, err := d.ask(ctx, o)
		if err != nil {
			return 0, err
		}
		d.mu.Lock()
		d.learn(e)
		d.mu.Unlock()
		return 0, nil
	default:
		return 0, d.refreshViaPrimary(ctx, o)
	}
}

// refreshAndPersist asks the control plane and writes the answer before it
// counts. It writes also what it has on disk already: a secondary waits for
// exactly this write.
func (d *Data) refreshAndPersist(ctx context.Context, o targets.Object) (int64, error) {
	e, err := d.ask(ctx, o)
	if err != nil {
		return 0, err
	}
	if err := d.passGate(ctx); err != nil {
		return 0, fmt.Errorf("write local metadata cache: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	position, err := d.append(record{kind: recordEntry, object: o, epoch: e.Epoch, owner: e.Owner})
	if err != nil {
		return 0, fmt.Errorf("write local metadata cache: %w", err)
	}
	d.learn(e)
	return position, nil
}

func (d *Data) refreshViaPrimary(ctx context.Context, o targets.Object) error {
	position, err := d.primary.Flush(ctx, o)
	if err != nil {
		return fmt.Errorf("refresh and flush on the primary: %w", err)
	}
	if err := d.log.WaitFor(ctx, position); err != nil {
		return fmt.Errorf("wait for the primary's write to replicate: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	e, ok := d.state.copies[o]
	if !ok {
		return errors.New("the local metadata cache lacks the object after its flush")
	}
	d.learn(e)
	return nil
}

func (d *Data) ask(ctx context.Context, o targets.Object) (targets.Entry, error) {
	entries, err := d.control.Fetch(ctx, targets.Fetch{Objects: []targets.Object{o}, Cause: targets.CauseNode, Client: string(d.self.ID)})
	if err != nil {
		return targets.Entry{}, fmt.Errorf("ask the control plane: %w", err)
	}
	if len(entries) != 1 || entries[0].Object != o {
		return targets.Entry{}, fmt.Errorf("ask the control plane: it does not know %s", o)
	}
	return entries[0], nil
}

// Flush makes a primary refresh the object and write the answer, and returns
// the position of that write.
func (d *Data) Flush(ctx context.Context, o targets.Object) (int64, error) {
	if err := d.needPrimary("flush"); err != nil {
		return 0, err
	}
	if _, ok := d.known[o]; !ok {
		return 0, fmt.Errorf("flush: there is no object %s", o)
	}
	return d.flights.wait(ctx, d.flights.start(o))
}
