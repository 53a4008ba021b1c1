package fleet

import (
	"context"
	"strconv"
	"time"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/xk6-metacache/client"
)

// resubscribeWait bounds how fast a broken push stream is opened again.
const resubscribeWait = 50 * time.Millisecond

// subscribe opens the push streams. Client i hears stream i mod streams.
func (f *Fleet) subscribe(ctx context.Context, w targets.Watcher) {
	streams := min(f.config.Streams, len(f.members))
	for s := range streams {
		var audience []*member
		for i := s; i < len(f.members); i += streams {
			audience = append(audience, f.members[i])
		}
		name := f.config.Name + "-stream-" + strconv.Itoa(s)
		f.loops.Go(func() { f.listen(ctx, w, name, audience) })
	}
}

// listen keeps one push stream open until ctx ends.
func (f *Fleet) listen(ctx context.Context, w targets.Watcher, name string, audience []*member) {
	for first := true; ctx.Err() == nil; first = false {
		for _, m := range audience {
			f.lockedPush(ctx, m, func() client.PushResult { return m.cache.Resubscribed(first) })
		}
		// An error only says that the stream broke; what was lost with it is
		// repaired by the gap that Resubscribed reports.
		_ = w.Watch(ctx, name, func(p targets.Push) { f.deliver(ctx, name, audience, p) })
		select {
		case <-ctx.Done():
		case <-time.After(resubscribeWait):
		}
	}
}

// deliver hands one push to the clients of a stream.
func (f *Fleet) deliver(ctx context.Context, name string, audience []*member, p targets.Push) {
	now := f.base.Now()
	applied := 0
	for _, m := range audience {
		applied += f.lockedPush(ctx, m, func() client.PushResult { return m.cache.Pushed(now, p) }).Applied
	}
	if p.Heartbeat {
		return
	}
	e := targets.Event{Start: now, End: f.base.Now(), Client: name, Verb: targets.EventPush,
		Outcome: targets.Done, Seq: p.Seq, Applied: applied}
	if len(p.Entries) == 1 {
		e.Object, e.Served = p.Entries[0].Object, p.Entries[0].Epoch
	}
	f.sink.Event(e)
}

// lockedPush changes a client's cache and starts what the result asks for.
func (f *Fleet) lockedPush(ctx context.Context, m *member, change func() client.PushResult) client.PushResult {
	m.mu.Lock()
	r := change()
	m.mu.Unlock()
	if r.Expired {
		f.refresher.reschedule(m)
	}
	if r.Gap && f.config.Policy.GapPull {
		f.loops.Go(func() { _ = f.pullAll(ctx, m, targets.CauseGap) })
	}
	return r
}
