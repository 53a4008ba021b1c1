package load

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Config is what a [Runner] plays.
type Config struct {
	Scenarios []Scenario
	// VUs are ready to iterate: as many as [VUs] says.
	VUs []VU
	// NewVU makes a further VU in the middle of the run, for scenarios that
	// may use more than are ready. It is called by one goroutine at a time.
	NewVU func(ctx context.Context) (VU, error)
	// Dropped is told of n iterations that were due and never started. It may
	// be called by several goroutines at once. Nil is allowed.
	Dropped func(scenario string, n uint64)
	// Failed is told that NewVU failed. Nil is allowed.
	Failed func(err error)
}

// Snapshot is the state of a run at one moment.
type Snapshot struct {
	Active      int // VUs at work
	Initialized int // VUs that exist
	Completed   uint64
	Failed      uint64 // of the completed
	Interrupted uint64
	Dropped     uint64
	Scenarios   []ScenarioSnapshot
}

// ScenarioSnapshot is the state of one scenario.
type ScenarioSnapshot struct {
	Name, Executor string
	Started, Ended bool
	Progress       float64 // from 0 to 1
}

// Runner plays scenarios once.
type Runner struct {
	cfg       Config
	running   []*Running
	idle      chan *member
	start     time.Time
	newVUGate sync.Mutex

	active, initialized                atomic.Int64
	completed, failed, cut, notStarted atomic.Uint64
}

// member is a VU of the pool.
type member struct{ vu VU }

// New returns a runner, or an error that names the scenario and the setting
// which makes no sense.
func New(cfg Config) (*Runner, error) {
	for _, s := range cfg.Scenarios {
		if !s.share.All() {
			continue // a part of a scenario that makes sense; it may have no VU ready
		}
		if err := s.Validate(); err != nil {
			return nil, fmt.Errorf("scenario %q: %w", s.Name, err)
		}
	}
	ready, _ := VUs(cfg.Scenarios)
	if len(cfg.VUs) < ready {
		return nil, fmt.Errorf("the scenarios need %d VUs and only %d are ready", ready, len(cfg.VUs))
	}
	room := len(cfg.VUs) // for every VU that can ever be, so that releasing one never blocks
	for _, s := range cfg.Scenarios {
		_, most := s.Executor.VUs()
		room += most
	}
	r := &Runner{cfg: cfg, idle: make(chan *member, room)}
	for _, vu := range cfg.VUs {
		r.idle <- &member{vu: vu}
	}
	r.initialized.Store(int64(len(cfg.VUs)))
	for _, s := range cfg.Scenarios {
		r.running = append(r.running, &Running{Scenario: s, runner: r})
	}
	return r, nil
}

// Run plays the scenarios and returns when all iterations have ended. When
// ctx ends, running iterations are interrupted and Run returns soon after. It
// is called once.
func (r *Runner) Run(ctx context.Context) {
	r.start = time.Now()
	var wg sync.WaitGroup
	for _, s := range r.running {
		wg.Go(func() { s.play(ctx) })
	}
	wg.Wait()
}

// Snapshot returns the state of the run. It may be called at any time.
func (r *Runner) Snapshot() Snapshot {
	s := Snapshot{
		Active: int(r.active.Load()), Initialized: int(r.initialized.Load()),
		Completed: r.completed.Load(), Failed: r.failed.Load(), Interrupted: r.cut.Load(), Dropped: r.notStarted.Load(),
	}
	for _, sc := range r.running {
		s.Scenarios = append(s.Scenarios, ScenarioSnapshot{
			Name: sc.Scenario.Name, Executor: sc.Scenario.Executor.Name(),
			Started: !sc.StartedAt().IsZero(), Ended: sc.ended.Load(), Progress: sc.Progress(),
		})
	}
	return s
}

// take returns an idle VU, waiting for one that another scenario still holds.
func (r *Runner) take(ctx context.Context) (*member, bool) {
	select {
	case m := <-r.idle:
		return m, true
	default:
	}
	select {
	case m := <-r.idle:
		return m, true
	case <-ctx.Done():
		return nil, false
	}
}

func (r *Runner) release(m *member) { r.idle <- m }

// grow makes a further VU; one is made at a time.
func (r *Runner) grow(ctx context.Context) (*member, bool) {
	r.newVUGate.Lock()
	defer r.newVUGate.Unlock()
	if ctx.Err() != nil || r.cfg.NewVU == nil {
		return nil, false
	}
	vu, err := r.cfg.NewVU(ctx)
	if err != nil {
		if r.cfg.Failed != nil {
			r.cfg.Failed(err)
		}
		return nil, false
	}
	r.initialized.Add(1)
	return &member{vu: vu}, true
}
