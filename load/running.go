package load

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// Running is a scenario at play. Its methods may be called at any time and by
// several goroutines at once.
type Running struct {
	Scenario Scenario

	runner  *Runner
	started atomic.Pointer[time.Time]
	ended   atomic.Bool
	next    atomic.Uint64 // number of the next iteration
	done    atomic.Uint64 // iterations that have ended
}

// StartedAt returns when the scenario started, or the zero time before.
func (s *Running) StartedAt() time.Time {
	if t := s.started.Load(); t != nil {
		return *t
	}
	return time.Time{}
}

// Progress returns the share of the scenario that is done, from 0 to 1.
func (s *Running) Progress() float64 {
	switch {
	case s.ended.Load():
		return 1
	case s.started.Load() == nil:
		return 0
	}
	return min(1, max(0, s.Scenario.Executor.progress(s)))
}

// timeProgress is the share of the duration that has passed.
func (s *Running) timeProgress() float64 {
	return float64(time.Since(s.StartedAt())) / float64(s.Scenario.Executor.Duration())
}

// play waits for the start time and runs the executor under two contexts: soft
// ends when no further iteration may start, hard when the running ones must
// give up.
func (s *Running) play(ctx context.Context) {
	defer s.ended.Store(true)
	if !sleepUntil(ctx, s.runner.start.Add(s.Scenario.StartTime)) {
		return
	}
	start := s.runner.start.Add(s.Scenario.StartTime)
	s.started.Store(&start)
	end := start.Add(s.Scenario.Executor.Duration())
	hard, cancelHard := context.WithDeadline(ctx, end.Add(s.Scenario.GracefulStop))
	defer cancelHard()
	soft, cancelSoft := context.WithDeadline(hard, end)
	defer cancelSoft()
	s.Scenario.Executor.run(soft, hard, s)
}

// iteration numbers the next iteration, which starts now.
func (s *Running) iteration(ofVU uint64) Iteration {
	now := time.Since(s.runner.start)
	n := s.next.Add(1) - 1
	return Iteration{Scenario: s, InScenario: n, InTest: s.Scenario.share.Number(n), OfVU: ofVU, Scheduled: now, Started: now}
}

// iterate runs one iteration and counts how it ended.
func (s *Running) iterate(ctx context.Context, m *member, it Iteration) {
	err := m.vu.Iterate(ctx, it)
	s.done.Add(1)
	switch {
	case errors.Is(err, ErrInterrupted):
		s.runner.cut.Add(1)
		return
	case err != nil:
		s.runner.failed.Add(1)
	}
	s.runner.completed.Add(1)
}

// loop lets one VU iterate while more says so. VUs count as active for as long
// as they loop.
func (s *Running) loop(soft, hard context.Context, more func() bool) {
	m, ok := s.runner.take(soft)
	if !ok {
		return
	}
	defer s.runner.release(m)
	s.runner.active.Add(1)
	defer s.runner.active.Add(-1)
	for n := uint64(0); soft.Err() == nil && more(); n++ {
		s.iterate(hard, m, s.iteration(n))
	}
}

func (s *Running) drop(n uint64) {
	if n == 0 {
		return
	}
	s.runner.notStarted.Add(n)
	if s.runner.cfg.Dropped != nil {
		s.runner.cfg.Dropped(s.Scenario.Name, n)
	}
}

// sleepUntil waits for an instant. It reports false when ctx ended first.
func sleepUntil(ctx context.Context, at time.Time) bool {
	d := time.Until(at)
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
