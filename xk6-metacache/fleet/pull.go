package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/metachaos/metachaos/targets"
)

// pull fetches one object for a client and stores the answer.
func (f *Fleet) pull(ctx context.Context, m *member, o targets.Object, cause targets.Cause) (targets.Entry, error) {
	start := f.base.Now()
	entries, shared, err := f.fetch(ctx, m, []targets.Object{o}, cause)
	var entry targets.Entry
	if err == nil {
		if len(entries) != 1 {
			err = fmt.Errorf("the control plane knows no object %s", o)
		} else {
			entry = entries[0]
		}
	}
	applied := f.store(m, entries)
	f.pullEvent(m, start, cause, o, entry.Epoch, applied, shared, err)
	if err != nil {
		return targets.Entry{}, fmt.Errorf("pull %s: %w", o, err)
	}
	return entry, nil
}

// pullAll fetches every object that a client caches, or all when it caches none.
func (f *Fleet) pullAll(ctx context.Context, m *member, cause targets.Cause) error {
	start := f.base.Now()
	entries, shared, err := f.fetch(ctx, m, nil, cause)
	applied := f.store(m, entries)
	f.pullEvent(m, start, cause, targets.Object{}, 0, applied, shared, err)
	if err != nil {
		return fmt.Errorf("pull all objects: %w", err)
	}
	return nil
}

// fetch calls the control plane, or waits for a call under way. The call that
// clients share is detached from the one that began it: a client that gives
// up must not fail the others (a poisoned singleflight).
func (f *Fleet) fetch(ctx context.Context, m *member, objects []targets.Object, cause targets.Cause) (entries []targets.Entry, shared bool, err error) {
	request := targets.Fetch{Objects: objects, Cause: cause, Client: m.name}
	if !f.config.Policy.Singleflight {
		ctx, cancel := context.WithTimeout(ctx, f.config.PullTimeout)
		defer cancel()
		entries, err = f.fetcher.Fetch(ctx, request)
		return entries, false, err
	}
	key := "*"
	if len(objects) == 1 {
		key = objects[0].String()
	}
	led := false
	flight := f.flights.DoChan(key, func() (any, error) {
		led = true // read after the channel delivered, so ordered by it
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.config.PullTimeout)
		defer cancel()
		return f.fetcher.Fetch(ctx, request)
	})
	select {
	case <-ctx.Done():
		return nil, true, context.Cause(ctx)
	case r := <-flight:
		entries, _ = r.Val.([]targets.Entry)
		return entries, !led, r.Err
	}
}

func (f *Fleet) store(m *member, entries []targets.Entry) (applied int) {
	now := f.base.Now()
	m.mu.Lock()
	for _, e := range entries {
		if m.cache.Pulled(now, e) {
			applied++
		}
	}
	m.mu.Unlock()
	f.refresher.watch(m, entries)
	return applied
}

func (f *Fleet) pullEvent(m *member, start time.Duration, cause targets.Cause, o targets.Object, epoch targets.Epoch, applied int, shared bool, err error) {
	e := targets.Event{Start: start, End: f.base.Now(), Client: m.name, Verb: targets.EventPull, Object: o,
		Outcome: targets.Done, Served: epoch, Cause: cause, Applied: applied, Shared: shared}
	if err != nil {
		e.Outcome, e.Code = targets.Refused, targets.CodeControlDown
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			e.Outcome, e.Code = targets.Unknown, targets.CodeTimeout
		}
	}
	f.sink.Event(e)
}
