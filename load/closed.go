package load

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

var (
	_ Executor = ConstantVUs{}
	_ Executor = SharedIterations{}
	_ Executor = PerVUIterations{}
)

// ConstantVUs lets a number of VUs iterate for a time.
type ConstantVUs struct {
	Count int
	For   time.Duration
}

// Name returns constant-vus.
func (ConstantVUs) Name() string { return "constant-vus" }

// Validate wants a VU and a second.
func (e ConstantVUs) Validate() error {
	return firstError(atLeast("vus", int64(e.Count), 1), longEnough("duration", e.For))
}

// VUs returns the count, twice.
func (e ConstantVUs) VUs() (ready, most int) { return e.Count, e.Count }

// Duration returns the time.
func (e ConstantVUs) Duration() time.Duration { return e.For }

func (e ConstantVUs) progress(s *Running) float64 { return s.timeProgress() }

func (e ConstantVUs) run(soft, hard context.Context, s *Running) {
	var wg sync.WaitGroup
	for range e.Count {
		wg.Go(func() { s.loop(soft, hard, func() bool { return true }) })
	}
	wg.Wait()
}

// SharedIterations lets VUs share a number of iterations, each taking the next
// as soon as it is free. Those that have not started after Max are dropped.
type SharedIterations struct {
	Count      int
	Iterations int64
	Max        time.Duration
}

// Name returns shared-iterations.
func (SharedIterations) Name() string { return "shared-iterations" }

// Validate wants a VU and no more VUs than iterations.
func (e SharedIterations) Validate() error {
	if err := firstError(atLeast("vus", int64(e.Count), 1), atLeast("iterations", e.Iterations, 1), longEnough("maxDuration", e.Max)); err != nil {
		return err
	}
	if e.Iterations < int64(e.Count) {
		return fieldError("iterations", "want at least one for each of the VUs", e.Iterations)
	}
	return nil
}

// VUs returns the count, twice.
func (e SharedIterations) VUs() (ready, most int) { return e.Count, e.Count }

// Duration returns the time limit.
func (e SharedIterations) Duration() time.Duration { return e.Max }

func (e SharedIterations) progress(s *Running) float64 {
	return float64(s.done.Load()) / float64(e.Iterations)
}

func (e SharedIterations) run(soft, hard context.Context, s *Running) {
	var taken atomic.Int64
	var wg sync.WaitGroup
	for range e.Count {
		wg.Go(func() { s.loop(soft, hard, func() bool { return taken.Add(1) <= e.Iterations }) })
	}
	wg.Wait()
	s.drop(uint64(e.Iterations) - s.next.Load())
}

// PerVUIterations lets each of the VUs run a number of iterations. Those that
// have not started after Max are dropped.
type PerVUIterations struct {
	Count      int
	Iterations int64 // of each VU
	Max        time.Duration
}

// Name returns per-vu-iterations.
func (PerVUIterations) Name() string { return "per-vu-iterations" }

// Validate wants a VU and an iteration.
func (e PerVUIterations) Validate() error {
	return firstError(atLeast("vus", int64(e.Count), 1), atLeast("iterations", e.Iterations, 1), longEnough("maxDuration", e.Max))
}

// VUs returns the count, twice.
func (e PerVUIterations) VUs() (ready, most int) { return e.Count, e.Count }

// Duration returns the time limit.
func (e PerVUIterations) Duration() time.Duration { return e.Max }

func (e PerVUIterations) total() uint64 { return uint64(e.Count) * uint64(e.Iterations) }

func (e PerVUIterations) progress(s *Running) float64 {
	return float64(s.done.Load()) / float64(e.total())
}

func (e PerVUIterations) run(soft, hard context.Context, s *Running) {
	var wg sync.WaitGroup
	for range e.Count {
		wg.Go(func() {
			var n int64
			s.loop(soft, hard, func() bool { n++; return n <= e.Iterations })
		})
	}
	wg.Wait()
	s.drop(e.total() - s.next.Load())
}
