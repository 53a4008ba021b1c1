package load

import (
	"context"
	"sync"
	"time"
)

var (
	_ Executor = ConstantArrivalRate{}
	_ Executor = RampingArrivalRate{}
)

// ConstantArrivalRate starts Rate iterations per Unit, evenly, whether or not
// earlier ones have ended. One that finds no free VU is dropped and never made
// up for.
type ConstantArrivalRate struct {
	Rate            int64
	Unit            time.Duration
	For             time.Duration
	PreAllocatedVUs int
	MaxVUs          int // further VUs are made one at a time, when one was missed
}

// Name returns constant-arrival-rate.
func (ConstantArrivalRate) Name() string { return "constant-arrival-rate" }

// Validate wants a rate, a second, and VUs.
func (e ConstantArrivalRate) Validate() error {
	return firstError(atLeast("rate", e.Rate, 1), validUnit(e.Unit), longEnough("duration", e.For), validPool(e.PreAllocatedVUs, e.MaxVUs))
}

// VUs returns the pre-allocated and the highest number.
func (e ConstantArrivalRate) VUs() (ready, most int) { return e.PreAllocatedVUs, e.MaxVUs }

// Duration returns the time.
func (e ConstantArrivalRate) Duration() time.Duration { return e.For }

func (e ConstantArrivalRate) progress(s *Running) float64 { return s.timeProgress() }

func (e ConstantArrivalRate) run(soft, hard context.Context, s *Running) {
	runArrivals(soft, hard, s, ConstantPace{Rate: e.Rate, Unit: e.Unit, Duration: e.For}, e.PreAllocatedVUs, e.MaxVUs)
}

// RampingArrivalRate is like [ConstantArrivalRate] with a rate that changes
// along stages.
type RampingArrivalRate struct {
	StartRate       int64
	Unit            time.Duration
	Stages          []Stage
	PreAllocatedVUs int
	MaxVUs          int
}

// Name returns ramping-arrival-rate.
func (RampingArrivalRate) Name() string { return "ramping-arrival-rate" }

// Validate wants stages and VUs.
func (e RampingArrivalRate) Validate() error {
	return firstError(atLeast("startRate", e.StartRate, 0), validUnit(e.Unit), validStages(e.Stages, "target"), validPool(e.PreAllocatedVUs, e.MaxVUs))
}

// VUs returns the pre-allocated and the highest number.
func (e RampingArrivalRate) VUs() (ready, most int) { return e.PreAllocatedVUs, e.MaxVUs }

// Duration returns that of all stages.
func (e RampingArrivalRate) Duration() time.Duration { return stagesDuration(e.Stages) }

func (e RampingArrivalRate) progress(s *Running) float64 { return s.timeProgress() }

func (e RampingArrivalRate) run(soft, hard context.Context, s *Running) {
	runArrivals(soft, hard, s, RampPace{Start: e.StartRate, Unit: e.Unit, Stages: e.Stages}, e.PreAllocatedVUs, e.MaxVUs)
}

func validUnit(unit time.Duration) error {
	if unit <= 0 {
		return fieldError("timeUnit", "want more than 0", unit)
	}
	return nil
}

// arrivals hands iterations that are due to whichever worker is free.
type arrivals struct {
	running *Running
	hard    context.Context
	free    chan *worker
	wg      sync.WaitGroup // workers
	growth  sync.WaitGroup // the making of one

	mu      sync.Mutex
	all     []*worker
	size    int  // workers that exist or are being made
	growing bool // one is being made
}

// worker is a VU with a goroutine of its own, whose stack is grown once for
// all its iterations.
type worker struct {
	member *member
	work   chan Iteration
}

func runArrivals(soft, hard context.Context, s *Running, pace Pacer, pre, most int) {
	a := &arrivals{running: s, hard: hard, free: make(chan *worker, most), size: pre}
	for range pre {
		m, ok := s.runner.take(soft)
		if !ok {
			break
		}
		a.hire(m)
	}
	a.dispatch(soft, pace, most)
	<-soft.Done()
	a.dismiss()
}

// dispatch starts what is due, by absolute times: after a stall everything
// that has become due starts at once, and says how late it is.
func (a *arrivals) dispatch(soft context.Context, pace Pacer, most int) {
	s := a.running
	offset := s.StartedAt().Sub(s.runner.start)
	for n := uint64(0); ; n++ {
		due, more := pace.Due(s.Scenario.share.Number(n))
		if !more || !sleepUntil(soft, s.StartedAt().Add(due)) {
			return
		}
		select {
		case w := <-a.free:
			it := s.iteration(0)
			it.Paced, it.Scheduled = true, offset+due
			w.work <- it
		default:
			s.drop(1)
			a.growBeyond(soft, most)
		}
	}
}

func (a *arrivals) hire(m *member) {
	w := &worker{member: m, work: make(chan Iteration, 1)}
	a.mu.Lock()
	a.all = append(a.all, w)
	a.mu.Unlock()
	a.wg.Go(func() { a.serve(w) })
	a.free <- w
}

func (a *arrivals) serve(w *worker) {
	s := a.running
	defer s.runner.release(w.member)
	n := uint64(0)
	for it := range w.work {
		it.OfVU = n
		n++
		it.Started = time.Since(s.runner.start)
		s.runner.active.Add(1)
		s.iterate(a.hard, w.member, it)
		s.runner.active.Add(-1)
		a.free <- w
	}
}

// growBeyond makes one more VU in the background, up to most.
func (a *arrivals) growBeyond(soft context.Context, most int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.growing || a.size >= most {
		return
	}
	a.growing = true
	a.size++
	a.growth.Go(func() {
		m, ok := a.running.runner.grow(soft)
		if ok {
			a.hire(m)
		}
		a.mu.Lock()
		a.growing = false
		if !ok {
			a.size--
		}
		a.mu.Unlock()
	})
}

// dismiss waits for the running iterations and sends the workers home.
func (a *arrivals) dismiss() {
	a.growth.Wait() // or a worker could be hired after the closing below
	for _, w := range a.all {
		close(w.work)
	}
	a.wg.Wait()
}
