package chaos

import (
	"context"
	"encoding/json"
	"time"

	"github.com/metachaos/metachaos/targets"
)

// Fault is one kind of disturbance. An implementation is bound to its target
// when it is made; what it needs to take an injection back it keeps in the
// [Handle], which is journalled, so that another process can recover it.
//
// Methods may be called concurrently for different handles. The runner calls
// them in this order: Validate, Plan, (journal), Inject, Status…, Revert.
type Fault interface {
	// Describe says what the fault is called and needs. It is constant.
	Describe() Description
	// Validate checks the step's configuration without touching or asking the
	// target. Errors name the field and what is allowed.
	Validate(step Step) error
	// Plan works out exactly what Inject would touch, and records the state
	// before (the pre-image). It changes nothing. A step that selects nothing
	// is an error.
	Plan(ctx context.Context, step Step, scope Scope) (Handle, error)
	// Inject does it. After an error the injection may be partial; the runner
	// reverts it like a whole one.
	Inject(ctx context.Context, h Handle) error
	// Status says whether the fault has had an effect that can be measured.
	Status(ctx context.Context, h Handle) (Status, error)
	// Revert takes the injection back and probes that it is gone. Reverting
	// twice is harmless.
	Revert(ctx context.Context, h Handle) Reversal
	// Recover does what Revert does, in another process, after the controller
	// died: there is no live target, only the handle.
	Recover(ctx context.Context, h Handle) Reversal
}

// Description tells people and the runner about a fault.
type Description struct {
	Name    string // as plans name it, for example "push.drop"
	Summary string // one sentence
	// Instant marks an action: it is done once and has nothing to revert.
	Instant bool
	// Needs are the capabilities a target must have.
	Needs []targets.Capability
	// Rule, if set, is a rule name that the target must accept as well.
	Rule string
	// Fields documents the keys of the step's "with".
	Fields []Field
}

// Field documents one configuration key.
type Field struct {
	Name, Type, Default, Summary string
}

// Step is one fault or action of a timeline, as the plan gives it.
type Step struct {
	ID    string
	Fault string
	At    time.Duration // offset from the start of the load
	For   time.Duration // 0 for actions
	On    targets.Selector
	// Decode strictly decodes the step's "with" into a struct with yaml tags.
	// Errors carry the position in the plan.
	Decode func(into any) error
	// Seed is derived from the plan's seed and the step's id.
	Seed uint64
}

// Scope is what may be touched: only what the target declares as its own.
type Scope struct {
	Info      targets.Info
	Topology  targets.Topology
	Processes []targets.Process
}

// Handle is everything needed to take one injection back. It is plain data,
// and journalled before anything is touched.
type Handle struct {
	ID    string        `json:"id"`
	Fault string        `json:"fault"`
	Lease time.Duration `json:"lease"`
	// Touches lists, for people, exactly what is touched: "pid 4711 (s1
	// primary): SIGSTOP".
	Touches []string `json:"touches"`
	// State is the fault's own record, with the pre-image.
	State json.RawMessage `json:"state,omitempty"`
}

// Status is the measured effect of an injection.
type Status struct {
	Effective bool   `json:"effective"`
	Evidence  string `json:"evidence"`
}

// Undone is how sure a reversal is.
type Undone string

// The three answers of a reversal; only the first is clean.
const (
	Reverted      Undone = "reverted"
	NotReverted   Undone = "not-reverted"
	RevertUnknown Undone = "unknown"
)

// Reversal is the result of a revert, with its evidence and, unless it is
// clean, how a person can undo what is left.
type Reversal struct {
	Undone   Undone `json:"undone"`
	Evidence string `json:"evidence"`
	HowTo    string `json:"how_to,omitempty"`
}
