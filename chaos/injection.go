package chaos

import "time"

// Phase is a moment in the life of an injection.
type Phase string

// The phases. An action ends with done; a fault with reverted, not-reverted
// or unknown. Failed means that injecting failed; a reversal follows it.
const (
	PhasePlanned     Phase = "planned"
	PhaseStarted     Phase = "started"
	PhaseEffective   Phase = "effective"
	PhaseFailed      Phase = "failed"
	PhaseDone        Phase = "done"
	PhaseReverting   Phase = "reverting"
	PhaseReverted    Phase = "reverted"
	PhaseNotReverted Phase = "not-reverted"
	PhaseUnknown     Phase = "unknown"
)

// Injection is one record of what a step of the timeline did. At is an offset
// from the run's base instant.
type Injection struct {
	At       time.Duration `json:"at"`
	ID       string        `json:"id"` // the step's id
	Fault    string        `json:"fault"`
	Instant  bool          `json:"instant,omitempty"`
	Phase    Phase         `json:"phase"`
	Evidence string        `json:"evidence,omitempty"`
	HowTo    string        `json:"how_to,omitempty"`
	Touches  []string      `json:"touches,omitempty"` // with planned
	Lease    time.Duration `json:"lease,omitempty"`   // with planned
}
