package load

import (
	"context"
	"sync"
	"time"
)

var _ Executor = RampingVUs{}

// RampingVUs changes the number of iterating VUs along stages.
type RampingVUs struct {
	Start  int64
	Stages []Stage
	// GracefulRampDown is how long the iteration of a VU that is no longer
	// wanted may go on before it is interrupted.
	GracefulRampDown time.Duration
}

// Name returns ramping-vus.
func (RampingVUs) Name() string { return "ramping-vus" }

// Validate wants stages and a VU at some time.
func (e RampingVUs) Validate() error {
	if err := firstError(atLeast("startVUs", e.Start, 0), validStages(e.Stages, "target")); err != nil {
		return err
	}
	if e.GracefulRampDown < 0 {
		return fieldError("gracefulRampDown", "want 0 or more", e.GracefulRampDown)
	}
	if _, most := e.VUs(); most == 0 {
		return fieldError("stages", "want a target above 0 in one of them, or startVUs", "none")
	}
	return nil
}

// VUs returns the highest number on the way, twice.
func (e RampingVUs) VUs() (ready, most int) {
	highest := e.Start
	for _, s := range e.Stages {
		highest = max(highest, s.Target)
	}
	return int(highest), int(highest)
}

// Duration returns that of all stages.
func (e RampingVUs) Duration() time.Duration { return stagesDuration(e.Stages) }

func (e RampingVUs) progress(s *Running) float64 { return s.timeProgress() }

func (e RampingVUs) run(soft, hard context.Context, s *Running) {
	_, most := s.Scenario.Executor.VUs() // of our share
	seats := make([]*seat, most)
	for i := range seats {
		seats[i] = &seat{running: s, soft: soft, hard: hard, grace: e.GracefulRampDown}
	}
	var wg sync.WaitGroup
	now := 0
	for _, c := range s.Scenario.share.of(rampVUs(e.Start, e.Stages)) {
		if !sleepUntil(soft, s.StartedAt().Add(c.At)) {
			break
		}
		for ; now < c.VUs; now++ {
			seats[now].occupy(&wg)
		}
		for ; now > c.VUs; now-- {
			seats[now-1].leave()
		}
	}
	<-soft.Done()
	wg.Wait()
	for _, seat := range seats {
		seat.forget()
	}
}

// seat is the place of one VU of a ramp: wanted or not, and at work or not.
// The two differ while the last iteration of an unwanted VU comes to its end;
// if the VU is wanted again by then, it goes on as if nothing had been.
type seat struct {
	running    *Running
	soft, hard context.Context // of the scenario
	grace      time.Duration

	mu     sync.Mutex
	wanted bool
	atWork bool
	ctx    context.Context // of the iterations; nil when none may run
	cut    context.CancelFunc
	timer  *time.Timer // cuts after grace
}

func (t *seat) occupy(wg *sync.WaitGroup) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wanted = true
	if t.timer != nil {
		t.timer.Stop()
	}
	if !t.atWork {
		t.atWork = true
		wg.Go(t.work)
	}
}

func (t *seat) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.wanted {
		return
	}
	t.wanted = false
	switch {
	case !t.atWork:
	case t.cut == nil: // it has not started its first one
	case t.grace == 0:
		t.cut()
	default:
		t.timer = time.AfterFunc(t.grace, t.cut)
	}
}

func (t *seat) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
	}
	if t.cut != nil {
		t.cut()
	}
}

// next returns the context for one more iteration, or false when the VU is to
// leave. Deciding that and being seen as gone are one step, so that occupy
// cannot fall between.
func (t *seat) next() (context.Context, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.wanted || t.soft.Err() != nil {
		t.atWork = false
		return nil, false
	}
	if t.ctx == nil || t.ctx.Err() != nil { // cut, and then wanted again
		t.ctx, t.cut = context.WithCancel(t.hard)
	}
	return t.ctx, true
}

func (t *seat) work() {
	s := t.running
	m, ok := s.runner.take(t.soft)
	if !ok {
		t.mu.Lock()
		t.atWork = false
		t.mu.Unlock()
		return
	}
	defer s.runner.release(m)
	s.runner.active.Add(1)
	defer s.runner.active.Add(-1)
	for n := uint64(0); ; n++ {
		ctx, ok := t.next()
		if !ok {
			return
		}
		s.iterate(ctx, m, s.iteration(n))
	}
}
