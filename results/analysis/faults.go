package analysis

import (
	"cmp"
	"slices"
	"time"

	"github.com/metachaos/metachaos/chaos"
)

// FaultState is how far a step of the timeline got.
type FaultState string

// The states of a step. NotReverted, Unknown and Active may have left
// something behind.
const (
	FaultReverted    FaultState = "reverted"
	FaultDone        FaultState = "done"   // of an action, which has nothing to revert
	FaultFailed      FaultState = "failed" // of an action that was not done
	FaultNotReverted FaultState = "not-reverted"
	FaultUnknown     FaultState = "unknown"     // it cannot be told whether it was reverted
	FaultActive      FaultState = "active"      // the record ends before its reversal
	FaultNotStarted  FaultState = "not-started" // it was never injected
)

// FaultReport is what one step of the timeline did. Offsets count from the
// run's base instant; nil means that the step did not get there.
type FaultReport struct {
	ID        string         `json:"id"`
	Fault     string         `json:"fault,omitempty"`
	Instant   bool           `json:"instant,omitempty"`
	Planned   *time.Duration `json:"planned,omitempty"`
	Started   *time.Duration `json:"started,omitempty"`
	Effective *time.Duration `json:"effective,omitempty"`
	// Ended is when the fault was shown to be reverted, or the action done.
	Ended *time.Duration `json:"ended,omitempty"`
	State FaultState     `json:"state"`
	// Evidence is what showed the effect, or why there was none.
	Evidence string `json:"evidence,omitempty"`
	// Undoing is the evidence of the reversal, and HowTo says how a person can
	// undo what is left.
	Undoing string `json:"undoing,omitempty"`
	HowTo   string `json:"how_to,omitempty"`
	// Line is the first record of the step in the injections' file; 0 without.
	Line int `json:"line,omitempty"`
}

// TookEffect reports whether the fault had an effect that was measured, or
// the action was done.
func (f FaultReport) TookEffect() bool {
	return f.Effective != nil || f.Instant && f.Ended != nil
}

// faultTally collects the injections. It does not matter in which order they
// come.
type faultTally struct {
	byID map[string]*faultRecord
}

type faultRecord struct {
	FaultReport
	last time.Duration // offset of the record that State is from
}

func newFaultTally(steps []string) *faultTally {
	t := &faultTally{byID: map[string]*faultRecord{}}
	for _, id := range steps {
		t.of(id)
	}
	return t
}

func (t *faultTally) of(id string) *faultRecord {
	r := t.byID[id]
	if r == nil {
		r = &faultRecord{FaultReport: FaultReport{ID: id, State: FaultNotStarted}}
		t.byID[id] = r
	}
	return r
}

func (t *faultTally) add(line int, i chaos.Injection) {
	r := t.of(i.ID)
	r.Fault = i.Fault
	r.Instant = r.Instant || i.Instant
	if r.Line == 0 || line < r.Line {
		r.Line = line
	}
	switch i.Phase {
	case chaos.PhasePlanned:
		earliest(&r.Planned, i.At)
	case chaos.PhaseStarted:
		earliest(&r.Started, i.At)
		r.settle(FaultActive, i.At)
	case chaos.PhaseEffective:
		earliest(&r.Effective, i.At)
		r.Evidence = i.Evidence
	case chaos.PhaseFailed:
		if r.Evidence == "" {
			r.Evidence = i.Evidence
		}
		if r.Instant {
			r.settle(FaultFailed, i.At) // no reversal will follow
		}
	case chaos.PhaseDone:
		earliest(&r.Ended, i.At)
		r.settle(FaultDone, i.At)
		r.Evidence = i.Evidence
	case chaos.PhaseReverted:
		earliest(&r.Ended, i.At)
		r.settle(FaultReverted, i.At)
		r.Undoing = i.Evidence
	case chaos.PhaseNotReverted, chaos.PhaseUnknown:
		r.settle(FaultState(i.Phase), i.At)
		r.Undoing, r.HowTo = i.Evidence, i.HowTo
	}
}

// settle keeps the state of the latest record: a reversal that failed may
// succeed when it is tried again.
func (r *faultRecord) settle(s FaultState, at time.Duration) {
	if s == FaultActive {
		if r.State == FaultNotStarted {
			r.State = s
		}
		return
	}
	if r.State == FaultNotStarted || r.State == FaultActive || at >= r.last {
		r.State, r.last = s, at
	}
}

func earliest(have **time.Duration, at time.Duration) {
	if *have == nil || at < **have {
		*have = &at
	}
}

// reports returns the steps in the order of their start; those that never
// started come last.
func (t *faultTally) reports() []FaultReport {
	out := make([]FaultReport, 0, len(t.byID))
	for _, r := range t.byID {
		if r.State == FaultReverted || r.State == FaultDone {
			r.HowTo = ""
		} else {
			r.Ended = nil
		}
		out = append(out, r.FaultReport)
	}
	slices.SortFunc(out, func(a, b FaultReport) int {
		return cmp.Or(compareOffsets(a.Started, b.Started), compareOffsets(a.Planned, b.Planned), cmp.Compare(a.ID, b.ID))
	})
	return out
}

func compareOffsets(a, b *time.Duration) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return cmp.Compare(*a, *b)
}
