package chaos

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/metachaos/metachaos/internal/suggest"
	"github.com/metachaos/metachaos/targets"
)

// Guards bound what a timeline may do. The zero Guards allow one fault at a
// time, for at most ten minutes.
type Guards struct {
	MaxConcurrent int
	MaxDuration   time.Duration
}

func (g Guards) withDefaults() Guards {
	return Guards{
		MaxConcurrent: cmp.Or(g.MaxConcurrent, 1),
		MaxDuration:   cmp.Or(g.MaxDuration, 10*time.Minute),
	}
}

// Offer is what a target can do, as far as faults ask.
type Offer struct {
	Info targets.Info
	// Rules are the rule names that a cooperating target accepts. Nil means
	// that they are not known before the target runs: they are not checked.
	Rules []string
}

// OfferOf asks a target what it can do.
func OfferOf(t targets.Target) Offer {
	o := Offer{Info: t.Info()}
	if c, ok := t.(targets.Cooperator); ok {
		o.Rules = append([]string{}, c.Rules()...)
	}
	return o
}

// StepNeeds is implemented by a fault whose needs depend on how a step
// configures it. They count beside those of its [Description].
type StepNeeds interface {
	// NeedsOf returns what a valid step needs: capabilities, and a rule name
	// that the target must accept (empty: none).
	NeedsOf(step Step) (needs []targets.Capability, rule string)
}

// StepError is something wrong with one step of a timeline.
type StepError struct {
	Index int // in the timeline as given, from 0
	ID    string
	Fault string
	Err   error
}

// Error returns "step ID (FAULT): what is wrong".
func (e *StepError) Error() string { return fmt.Sprintf("step %s (%s): %v", e.ID, e.Fault, e.Err) }

// Unwrap returns what is wrong.
func (e *StepError) Unwrap() error { return e.Err }

// StepErrors is everything wrong with a timeline, in its order.
type StepErrors []*StepError

// Error returns one line per error.
func (es StepErrors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find what a single error holds.
func (es StepErrors) Unwrap() []error {
	out := make([]error, len(es))
	for i, e := range es {
		out[i] = e
	}
	return out
}

// Check finds everything that is wrong with a timeline before anything
// starts. It touches nothing. The error, if any, is a [StepErrors].
func Check(steps []Step, faults map[string]Fault, guards Guards, offer Offer) error {
	guards = guards.withDefaults()
	var errs StepErrors
	seen := map[string]bool{}
	for i, s := range steps {
		for _, err := range checkStep(s, faults, guards, offer, seen) {
			errs = append(errs, &StepError{Index: i, ID: s.ID, Fault: s.Fault, Err: err})
		}
		seen[s.ID] = true
	}
	errs = append(errs, checkOverlap(steps, faults, guards)...)
	if len(errs) == 0 {
		return nil
	}
	slices.SortStableFunc(errs, func(a, b *StepError) int { return a.Index - b.Index })
	return errs
}

func checkStep(s Step, faults map[string]Fault, guards Guards, offer Offer, seen map[string]bool) (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if s.ID == "" {
		bad("id is missing: every step needs one of its own")
	} else if seen[s.ID] {
		bad("id %q stands twice: give every step one of its own", s.ID)
	}
	if s.At < 0 {
		bad("at is %v: want 0s or later", s.At)
	}
	fault, ok := faults[s.Fault]
	if !ok {
		bad("no such fault or action: %s", suggest.Name(s.Fault, slices.Sorted(maps.Keys(faults))))
		return errs
	}
	d := fault.Describe()
	switch {
	case d.Instant && s.For != 0:
		bad("for is %v, but %s is an action, done in an instant: leave for out", s.For, d.Name)
	case !d.Instant && s.For <= 0:
		bad("for is missing: say how long the fault lasts, for example 10s")
	case s.For > guards.MaxDuration:
		bad("for is %v, longer than guards.max_duration allows (%v)", s.For, guards.MaxDuration)
	}
	if err := fault.Validate(s); err != nil {
		return append(errs, err) // what it needs cannot be told from a bad configuration
	}
	needs, rules := needsOf(fault, s)
	for _, c := range needs {
		if !offer.Info.Has(c) {
			bad("it needs a target with the capability %q, which the target %q lacks", c, offer.Info.Kind)
		}
	}
	for _, rule := range rules {
		if offer.Rules != nil && !slices.Contains(offer.Rules, rule) {
			bad("the target %q takes no rule %q; it takes: %s", offer.Info.Kind, rule, strings.Join(offer.Rules, ", "))
		}
	}
	return errs
}

// needsOf joins what the fault always needs with what this step makes it need.
func needsOf(fault Fault, s Step) (needs []targets.Capability, rules []string) {
	d := fault.Describe()
	needs = slices.Clone(d.Needs)
	if d.Rule != "" {
		rules = append(rules, d.Rule)
	}
	if f, ok := fault.(StepNeeds); ok {
		more, rule := f.NeedsOf(s)
		needs = append(needs, more...)
		if rule != "" && rule != d.Rule {
			rules = append(rules, rule)
		}
	}
	return needs, rules
}

// checkOverlap finds each step at whose start more faults would be active than
// allowed. A fault is active in [at, at+for); actions do not count.
func checkOverlap(steps []Step, faults map[string]Fault, guards Guards) (errs StepErrors) {
	lasts := func(s Step) bool {
		f, ok := faults[s.Fault]
		return ok && !f.Describe().Instant
	}
	for i, s := range steps {
		if !lasts(s) {
			continue
		}
		var others []string
		for k, o := range steps {
			// Of two that start together, the later in the plan counts the earlier.
			began := o.At < s.At || o.At == s.At && k < i
			if k != i && lasts(o) && began && s.At < o.At+o.For {
				others = append(others, o.ID)
			}
		}
		if len(others) >= guards.MaxConcurrent {
			errs = append(errs, &StepError{Index: i, ID: s.ID, Fault: s.Fault, Err: fmt.Errorf(
				"at %v %s would still be active, and guards.max_concurrent allows %d at once",
				s.At, strings.Join(others, ", "), guards.MaxConcurrent)})
		}
	}
	return errs
}
