package script

import (
	"container/heap"
	"context"
	"errors"
	"sync"
	"time"
)

// loop is the event loop of one runtime. All but the functions that register
// returns belong to the goroutine that runs it.
type loop struct {
	timers  timers
	nextID  int64
	pending map[int64]*timer // timers that may still be cleared; nil until the first

	mu      sync.Mutex
	jobs    []func() error
	waiting int           // callbacks that were registered and not called
	round   uint64        // of run; callbacks of earlier rounds are void
	wake    chan struct{} // made on the first wait
}

// errCallbackTwice is what comes of calling a registered callback again.
var errCallbackTwice = errors.New("a callback of a native module was called twice")

// register keeps the running round open until the returned function is called
// with a job for the loop.
func (l *loop) register() func(func() error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting++
	round, called := l.round, false
	return func(job func() error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.round != round {
			return // its round was cut short
		}
		if called {
			job = func() error { return errCallbackTwice }
		} else {
			called = true
			l.waiting--
		}
		l.jobs = append(l.jobs, job)
		if l.wake != nil {
			select {
			case l.wake <- struct{}{}:
			default:
			}
		}
	}
}

// hooks are called by run: settle after each job, idle before each wait.
type hooks interface {
	settle() error
	idle()
}

// run executes first and then whatever comes of it, until nothing is left to
// wait for, a job fails, or ctx ends. What is left then is dropped.
func (l *loop) run(ctx context.Context, h hooks, first func() error) error {
	defer l.clear()
	job := first
	for {
		if err := job(); err != nil {
			return err
		}
		if err := h.settle(); err != nil {
			return err
		}
		var open bool
		if job, open = l.next(); job != nil {
			continue
		}
		if !open {
			return nil
		}
		h.idle()
		if job = l.wait(ctx); job == nil {
			return causeOf(ctx)
		}
	}
}

// next takes a job that is ready. With none, it reports whether any may come.
func (l *loop) next() (job func() error, open bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.jobs) > 0 {
		job = l.jobs[0]
		l.jobs = l.jobs[1:]
		return job, true
	}
	if len(l.timers) > 0 && !l.timers[0].due.After(time.Now()) {
		return l.fire(), true
	}
	return nil, l.waiting > 0 || len(l.timers) > 0
}

// wait blocks until a job is ready, and returns nil when ctx ended first.
func (l *loop) wait(ctx context.Context) func() error {
	l.mu.Lock()
	if l.wake == nil {
		l.wake = make(chan struct{}, 1)
	}
	l.mu.Unlock()
	for {
		if job, _ := l.next(); job != nil {
			return job
		}
		var due <-chan time.Time
		if len(l.timers) > 0 {
			t := time.NewTimer(time.Until(l.timers[0].due))
			defer t.Stop()
			due = t.C
		}
		select {
		case <-l.wake:
		case <-due:
		case <-ctx.Done():
			return nil
		}
	}
}

func (l *loop) clear() {
	if len(l.timers) > 0 {
		l.timers = nil
		clear(l.pending)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting > 0 || len(l.jobs) > 0 {
		l.waiting, l.jobs = 0, nil
		l.round++
	}
}

// timer is a job for a later time. Timers that are due at the same time fire
// in the order in which they were set.
type timer struct {
	id    int64
	due   time.Time
	every time.Duration // 0 fires once
	job   func() error
}

// setTimer calls job after d and, if every is positive, again and again.
func (l *loop) setTimer(d, every time.Duration, job func() error) int64 {
	l.nextID++
	t := &timer{id: l.nextID, due: time.Now().Add(d), every: every, job: job}
	if l.pending == nil {
		l.pending = map[int64]*timer{}
	}
	l.pending[t.id] = t
	heap.Push(&l.timers, t)
	return t.id
}

func (l *loop) clearTimer(id int64) {
	t := l.pending[id]
	if t == nil {
		return
	}
	delete(l.pending, id)
	for i, o := range l.timers {
		if o == t {
			heap.Remove(&l.timers, i)
			return
		}
	}
}

// fire returns the job of the first timer, which is due.
func (l *loop) fire() func() error {
	t := heap.Pop(&l.timers).(*timer)
	if t.every == 0 {
		delete(l.pending, t.id)
		return t.job
	}
	return func() error {
		err := t.job()
		if l.pending[t.id] == t { // it may have been cleared by the job
			t.due = time.Now().Add(t.every)
			heap.Push(&l.timers, t)
		}
		return err
	}
}

// timers is a heap by due time.
type timers []*timer

var _ heap.Interface = (*timers)(nil)

func (t timers) Len() int { return len(t) }
func (t timers) Less(i, j int) bool {
	if t[i].due.Equal(t[j].due) {
		return t[i].id < t[j].id
	}
	return t[i].due.Before(t[j].due)
}
func (t timers) Swap(i, j int) { t[i], t[j] = t[j], t[i] }
func (t *timers) Push(x any)   { *t = append(*t, x.(*timer)) }
func (t *timers) Pop() any {
	old := *t
	last := old[len(old)-1]
	*t = old[:len(old)-1]
	return last
}
