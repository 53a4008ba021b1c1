package fleet

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/metachaos/metachaos/targets"
)

// refresher pulls entries in the background when they expire. It keeps one
// alarm per client and object, ordered by time; an alarm that rings for an
// entry which was renewed meanwhile is set anew.
type refresher struct {
	fleet *Fleet
	mu    sync.Mutex
	queue alarms
	armed map[alarmKey]time.Duration
	wake  chan struct{}
}

type alarmKey struct {
	member *member
	object targets.Object
}

type alarm struct {
	at time.Duration
	alarmKey
}

func newRefresher(f *Fleet) *refresher {
	return &refresher{fleet: f, armed: map[alarmKey]time.Duration{}, wake: make(chan struct{}, 1)}
}

func (r *refresher) wanted() bool { return r.fleet.config.Refresh == RefreshBackground }

// watch sets alarms for the entries of a client.
func (r *refresher) watch(m *member, entries []targets.Entry) {
	if !r.wanted() {
		return
	}
	for _, e := range entries {
		m.mu.Lock()
		at := m.cache.Expiry(e.Object)
		m.mu.Unlock()
		r.set(alarmKey{m, e.Object}, at)
	}
}

// reschedule sets all alarms of a client anew, after its expiries changed.
func (r *refresher) reschedule(m *member) {
	if !r.wanted() {
		return
	}
	m.mu.Lock()
	objects := m.cache.Objects()
	m.mu.Unlock()
	entries := make([]targets.Entry, len(objects))
	for i, o := range objects {
		entries[i].Object = o
	}
	r.watch(m, entries)
}

// set moves the alarm of a key. A queued alarm that rings later than its key
// is armed for is stale and ignored when it rings.
func (r *refresher) set(k alarmKey, at time.Duration) {
	if at == 0 {
		return
	}
	r.mu.Lock()
	r.armed[k] = at
	heap.Push(&r.queue, alarm{at, k})
	first := r.queue[0].at == at
	r.mu.Unlock()
	if first {
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
}

// run rings the alarms until ctx ends.
func (r *refresher) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		due, wait := r.due(r.fleet.base.Now())
		for _, k := range due {
			r.fleet.loops.Go(func() { r.refresh(ctx, k) })
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-timer.C:
		}
	}
}

// due takes the keys whose time has come, and says how long until the next.
func (r *refresher) due(now time.Duration) (keys []alarmKey, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.queue) > 0 && r.queue[0].at <= now {
		a := heap.Pop(&r.queue).(alarm)
		if r.armed[a.alarmKey] == a.at {
			delete(r.armed, a.alarmKey)
			keys = append(keys, a.alarmKey)
		}
	}
	if len(r.queue) == 0 {
		return keys, time.Hour
	}
	return keys, r.queue[0].at - now
}

// retryAfterFailure is how long a background refresh waits after a failed pull.
const retryAfterFailure = 500 * time.Millisecond

func (r *refresher) refresh(ctx context.Context, k alarmKey) {
	now := r.fleet.base.Now()
	k.member.mu.Lock()
	expiry := k.member.cache.Expiry(k.object)
	k.member.mu.Unlock()
	if expiry > now {
		r.set(k, expiry) // renewed by a pull on demand
		return
	}
	if _, err := r.fleet.pull(ctx, k.member, k.object, targets.CauseTTL); err != nil && ctx.Err() == nil {
		r.set(k, r.fleet.base.Now()+retryAfterFailure)
	}
}

// alarms is a heap by time.
type alarms []alarm

func (a alarms) Len() int           { return len(a) }
func (a alarms) Less(i, j int) bool { return a[i].at < a[j].at }
func (a alarms) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }

// Push implements [heap.Interface].
func (a *alarms) Push(x any) { *a = append(*a, x.(alarm)) }

// Pop implements [heap.Interface].
func (a *alarms) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}
