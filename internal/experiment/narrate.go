package experiment

import (
	"fmt"
	"time"

	"github.com/metachaos/metachaos/chaos"
	"github.com/metachaos/metachaos/load/script"
)

func (e *Experiment) narrate(format string, args ...any) {
	if e.config.Narrate != nil {
		e.config.Narrate(fmt.Sprintf(format, args...))
	}
}

// enter names the phase that begins.
func (e *Experiment) enter(phase string) {
	e.phase.Store(phase)
	e.narrate("%s", phase)
}

// narrateInjection says what a step of the timeline did.
func (e *Experiment) narrateInjection(in chaos.Injection) {
	line := fmt.Sprintf("%s (%s): %s", in.ID, in.Fault, in.Phase)
	for _, touch := range in.Touches {
		line += "; " + touch
	}
	if in.Evidence != "" {
		line += ": " + in.Evidence
	}
	if in.HowTo != "" {
		line += "; to undo it: " + in.HowTo
	}
	e.narrate("%s", line)
}

// Snapshot is the state of a run at one moment, for a live view. Rates are
// those of the last whole second.
type Snapshot struct {
	Phase             string
	Elapsed, Expected time.Duration // of the load
	VUs               int
	Iterations        uint64
	Dropped           uint64
	OperationsPerS    uint64
	FailedPerS        uint64 // operations that were not done
	RefusalsPerS      uint64
	PullsPerS         uint64 // the herd
	Active            []chaos.Active
}

// Snapshot returns the state of the run. It may be called at any time.
func (e *Experiment) Snapshot() Snapshot {
	s := Snapshot{Expected: e.expectedDuration()}
	if phase, ok := e.phase.Load().(string); ok {
		s.Phase = phase
	}
	if x := e.execution.Load(); x != nil {
		live := x.Live()
		s.Elapsed, s.VUs = live.Elapsed, live.Load.Active
		s.Iterations, s.Dropped = live.Load.Completed, live.Load.Dropped
		if live.Phase == script.PhaseSetup || live.Phase == script.PhaseTeardown {
			s.Phase = string(live.Phase)
		}
	}
	last := e.tap.live.second(1)
	s.OperationsPerS, s.FailedPerS = last.operations, last.operations-last.done
	s.RefusalsPerS, s.PullsPerS = last.refusals, last.pulls
	if r := e.chaos.Load(); r != nil {
		s.Active = r.Active()
	}
	return s
}

// expectedDuration is how long the scenarios start iterations, at most.
func (e *Experiment) expectedDuration() time.Duration {
	var longest time.Duration
	for _, s := range e.program.Options().Scenarios {
		longest = max(longest, s.StartTime+s.Executor.Duration())
	}
	return longest
}
