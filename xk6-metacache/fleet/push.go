package fleet

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/xk6-metacache/client"
)

// resubscribeWait bounds how fast a broken push stream is opened again.
const resubscribeWait = 50 * time.Millisecond

// stream is one push subscription and the clients that hear it.
type stream struct {
	name     string
	audience []*member
	stands   chan struct{} // closed by the first message
	first    sync.Once
}

// subscribe opens the push streams, which live until loops ends. Client i
// hears stream i mod streams. It returns when all streams stand, so that the
// first pull misses nothing, but waits no longer than for a pull: a control
// plane that is down is no reason not to start.
func (f *Fleet) subscribe(ctx, loops context.Context, w targets.Watcher) {
	streams := make([]*stream, min(f.config.Streams, len(f.members)))
	for s := range streams {
		one := &stream{name: f.config.Name + "-stream-" + strconv.Itoa(s), stands: make(chan struct{})}
		for i := s; i < len(f.members); i += len(streams) {
			one.audience = append(one.audience, f.members[i])
		}
		streams[s] = one
		f.loops.Go(func() { f.listen(loops, w, one) })
	}
	ctx, cancel := context.WithTimeout(ctx, f.config.PullTimeout)
	defer cancel()
	for _, s := range streams {
		select {
		case <-s.stands:
		case <-ctx.Done():
			return
		}
	}
}

// listen keeps one push stream open until ctx ends.
func (f *Fleet) listen(ctx context.Context, w targets.Watcher, s *stream) {
	for {
		for _, m := range s.audience {
			m.mu.Lock()
			m.cache.Subscribed()
			m.mu.Unlock()
		}
		// An error only says that the stream broke. What is lost with it is
		// repaired by the gap that the first message of the next one is.
		_ = w.Watch(ctx, s.name, func(p targets.Push) { f.deliver(ctx, s, p) })
		if !sleep(ctx, resubscribeWait) {
			return
		}
	}
}

// deliver hands one push to the clients of a stream.
func (f *Fleet) deliver(ctx context.Context, s *stream, p targets.Push) {
	now := f.base.Now()
	applied := 0
	for _, m := range s.audience {
		m.mu.Lock()
		r := m.cache.Pushed(now, p)
		m.mu.Unlock()
		applied += r.Applied
		f.followUp(ctx, m, r)
	}
	s.first.Do(func() { close(s.stands) })
	if p.Heartbeat {
		return
	}
	e := targets.Event{Start: now, End: f.base.Now(), Client: s.name, Verb: targets.EventPush,
		Outcome: targets.Done, Seq: p.Seq, Applied: applied}
	if len(p.Entries) == 1 {
		e.Object, e.Served = p.Entries[0].Object, p.Entries[0].Epoch
	}
	f.sink.Event(e)
}

// followUp starts what a push asks for.
func (f *Fleet) followUp(ctx context.Context, m *member, r client.PushResult) {
	if r.Expired {
		f.refresher.reschedule(m)
	}
	if !r.Gap || !f.config.Policy.GapPull {
		return
	}
	f.loops.Go(func() {
		if f.pullAll(ctx, m, targets.CauseGap) == nil {
			return
		}
		m.mu.Lock()
		m.cache.Unrepaired()
		m.mu.Unlock()
	})
}
