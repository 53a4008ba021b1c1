package load

import (
	"context"
	"errors"
	"time"
)

// VU is one virtual user: it runs iterations, one at a time.
type VU interface {
	// Iterate runs one iteration and returns when it has ended. When ctx ends
	// first, it gives up and returns an error that wraps [ErrInterrupted]. Any
	// other error means that the iteration ran to its end and failed.
	Iterate(ctx context.Context, it Iteration) error
}

// ErrInterrupted is what an iteration returns that was cut short.
var ErrInterrupted = errors.New("iteration interrupted")

// Iteration says which iteration it is and when it was due.
type Iteration struct {
	Scenario *Running
	// InScenario counts the iterations of the scenario, from 0, over all VUs.
	InScenario uint64
	// InTest is the number of the iteration among those that all processes
	// make together; see [Share].
	InTest uint64
	// OfVU counts the iterations of this VU in this scenario, from 0.
	OfVU uint64
	// Paced is set when the iteration was due at a set time: Scheduled.
	Paced bool
	// Scheduled and Started are offsets from the start of the load.
	Scheduled, Started time.Duration
}

// Late returns by how much the start missed the schedule; 0 unless Paced.
func (it Iteration) Late() time.Duration {
	if !it.Paced {
		return 0
	}
	return it.Started - it.Scheduled
}

// Scenario is a named part of the test. The name is up to the caller.
type Scenario struct {
	Name     string
	Executor Executor
	// StartTime is when the scenario starts, after the start of the load.
	StartTime time.Duration
	// GracefulStop is how long running iterations may go on after the scenario
	// has started its last one, before they are interrupted.
	GracefulStop time.Duration

	share Share // which iterations of the whole load are ours; see Part
}

// Executor is a way of starting iterations; the types of this package are the
// only ones.
type Executor interface {
	// Name returns the name that scripts use: constant-vus …
	Name() string
	// Validate reports settings that make no sense, naming the setting.
	Validate() error
	// VUs returns how many VUs must be ready before the start, and how many
	// may be in use at most.
	VUs() (ready, most int)
	// Duration returns for how long the executor starts iterations, at most.
	Duration() time.Duration
	// run starts iterations until soft ends, and returns when all of them have
	// ended. Iterations run under hard.
	run(soft, hard context.Context, s *Running)
	// progress returns the share that is done, from 0 to 1.
	progress(s *Running) float64
}

// Validate reports settings of the scenario that make no sense.
func (s Scenario) Validate() error {
	switch {
	case s.StartTime < 0:
		return fieldError("startTime", "want 0 or more", s.StartTime)
	case s.GracefulStop < 0:
		return fieldError("gracefulStop", "want 0 or more", s.GracefulStop)
	}
	return s.Executor.Validate()
}

// end is when the last iteration must have ended.
func (s Scenario) end() time.Duration {
	return s.StartTime + s.Executor.Duration() + s.GracefulStop
}

// VUs returns how many VUs a run of the scenarios must have ready before it
// starts, and how many it may use at most. Scenarios that do not overlap in
// time share theirs.
func VUs(scenarios []Scenario) (ready, most int) {
	for _, at := range scenarios {
		var r, m int
		for _, s := range scenarios {
			if s.StartTime <= at.StartTime && at.StartTime < s.end() {
				sr, sm := s.Executor.VUs()
				r += sr
				m += sm
			}
		}
		ready, most = max(ready, r), max(most, m)
	}
	return ready, most
}
