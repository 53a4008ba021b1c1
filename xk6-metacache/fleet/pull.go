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
	entries, shared, err := f.fetch(ctx, o, targets.Fetch{Objects: []targets.Object{o}, Cause: cause, Client: m.name})
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

// pullAll fetches every object for a client, and stores the answer.
func (f *Fleet) pullAll(ctx context.Context, m *member, cause targets.Cause) error {
	start := f.base.Now()
	entries, shared, err := f.fetch(ctx, targets.Object{}, targets.Fetch{Cause: cause, Client: m.name})
	applied := f.store(m, entries)
	f.pullEvent(m, start, cause, targets.Object{}, 0, applied, shared, err)
	if err != nil {
		return fmt.Errorf("pull all objects: %w", err)
	}
	return nil
}

// fetch calls the control plane, or waits for a call under way that asks for
// the same: of one object, or of all if that is zero.
func (f *Fleet) fetch(ctx context.Context, of targets.Object, r targets.Fetch) (entries []targets.Entry, shared bool, err error) {
	if f.config.Policy.Singleflight {
		return f.flights.fetch(ctx, of, r)
	}
	entries, err = f.fetchInTime(ctx, r)
	return entries, false, err
}

// fetchInTime calls the control plane and gives it no longer than the
// configuration says. The error tells a call that ran out of time, whatever
// the target made of it.
func (f *Fleet) fetchInTime(ctx context.Context, r targets.Fetch) ([]targets.Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, f.config.PullTimeout)
	defer cancel()
	entries, err := f.fetcher.Fetch(ctx, r)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return entries, err
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

// pullPeriodically pulls everything for every client once a period. The
// clients are spread evenly over the period, as those are that started at
// different times.
func (f *Fleet) pullPeriodically(ctx context.Context) {
	begin, period := time.Now(), f.config.Policy.PeriodicPull
	n := len(f.members)
	for turn := 1; ; turn++ {
		due := begin.Add(time.Duration(float64(period) * float64(turn) / float64(n)))
		if !sleep(ctx, time.Until(due)) {
			return
		}
		m := f.members[turn%n]
		// A failed pull is an event of its own; the next period repeats it.
		f.loops.Go(func() { _ = f.pullAll(ctx, m, targets.CausePeriodic) })
	}
}
