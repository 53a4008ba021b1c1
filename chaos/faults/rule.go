package faults

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/metachaos/metachaos/chaos"
	"github.com/metachaos/metachaos/targets"
)

// ruling is what all faults share that work by a rule of a target which
// cooperates. The target's nodes enforce the lease themselves.
type ruling struct {
	target targets.Target // may be nil
	opts   Options
}

// ruleState is the record of an injected rule.
type ruleState struct {
	Rule targets.Rule `json:"rule"`
	// Holders are the processes that the rule lives in.
	Holders []targets.Process `json:"holders"`
	// Planned is the moment of planning, as [targets.Base.String] writes it: the
	// lease cannot have begun earlier, nor much later.
	Planned string `json:"planned"`
}

// leaseSlack is added to the lease when somebody waits for it to lapse: arming
// comes a little after planning.
const leaseSlack = 5 * time.Second

func (r ruling) cooperator() (targets.Cooperator, error) {
	if r.target == nil {
		return nil, errNoTarget
	}
	c, ok := r.target.(targets.Cooperator)
	if !ok {
		return nil, fmt.Errorf("the target %q takes no rules", r.target.Info().Kind)
	}
	return c, nil
}

func (r ruling) plan(step chaos.Step, scope chaos.Scope, name string, with map[string]string) (ruleState, error) {
	c, err := r.cooperator()
	if err != nil {
		return ruleState{}, err
	}
	if known := c.Rules(); !slices.Contains(known, name) {
		return ruleState{}, fmt.Errorf("the target takes no rule %q; it takes: %s", name, strings.Join(known, ", "))
	}
	if _, err := selectNodes(scope.Topology, step.On, 0); err != nil {
		return ruleState{}, err
	}
	holders, err := r.holders(scope)
	if err != nil {
		return ruleState{}, err
	}
	rule := targets.Rule{ID: step.ID, Name: name, On: step.On, With: with, Seed: step.Seed}
	return ruleState{Rule: rule, Holders: holders, Planned: targets.NewBase().String()}, nil
}

// holders returns the processes that the target's rules live in: its own, or
// the controller when the target has none and listens nowhere.
func (r ruling) holders(scope chaos.Scope) ([]targets.Process, error) {
	inMemory := !slices.ContainsFunc(scope.Topology.Nodes, func(n targets.Node) bool { return n.Addr != "" || n.PID != 0 })
	if len(scope.Processes) > 0 || !inMemory {
		return scope.Processes, nil
	}
	self, err := r.opts.controller()
	return []targets.Process{self}, err
}

func (o Options) controller() (targets.Process, error) {
	if o.Controller != (targets.Process{}) {
		return o.Controller, nil
	}
	return targets.IdentifyProcess(os.Getpid())
}

// touches describes the rule for people.
func (s ruleState) touches() string {
	parts := make([]string, 0, len(s.Rule.With))
	for k, v := range s.Rule.With {
		parts = append(parts, k+"="+v)
	}
	slices.Sort(parts)
	where := "the whole target"
	if s.Rule.On != (targets.Selector{}) {
		where = describe(s.Rule.On)
	}
	return strings.TrimSpace(fmt.Sprintf("rule %s on %s: %s", s.Rule.Name, where, strings.Join(parts, " ")))
}

func (r ruling) inject(ctx context.Context, h chaos.Handle, s ruleState) error {
	c, err := r.cooperator()
	if err != nil {
		return err
	}
	s.Rule.Lease = h.Lease
	if err := c.SetRule(ctx, s.Rule); err != nil {
		return fmt.Errorf("set rule %s: %w", s.Rule.Name, err)
	}
	return nil
}

func (r ruling) status(ctx context.Context, s ruleState) (chaos.Status, error) {
	c, err := r.cooperator()
	if err != nil {
		return chaos.Status{}, err
	}
	state, err := c.RuleState(ctx, s.Rule.ID)
	if err != nil {
		return chaos.Status{}, fmt.Errorf("read rule %s: %w", s.Rule.Name, err)
	}
	return chaos.Status{Effective: state.Armed && state.Hits > 0, Evidence: evidenceOf(state)}, nil
}

func evidenceOf(s targets.RuleState) string {
	armed := "not armed"
	if s.Armed {
		armed = "armed"
	}
	return fmt.Sprintf("the rule is %s and acted on %d of %d", armed, s.Hits, s.Seen)
}

func (r ruling) revert(ctx context.Context, h chaos.Handle, s ruleState) chaos.Reversal {
	howTo := fmt.Sprintf("wait: the nodes drop the rule by themselves within %v of its start", h.Lease)
	c, err := r.cooperator()
	if err != nil {
		return unknown(err, howTo)
	}
	var state targets.RuleState
	if err = c.ClearRule(ctx, s.Rule.ID); err == nil {
		state, err = c.RuleState(ctx, s.Rule.ID)
	}
	switch {
	case err != nil && s.gone():
		return chaos.Reversal{Undone: chaos.Reverted, Evidence: "the processes that held the rule are gone"}
	case err != nil:
		return unknown(fmt.Errorf("clear rule %s: %w", s.Rule.Name, err), howTo)
	case state.Armed:
		return chaos.Reversal{Undone: chaos.NotReverted, Evidence: evidenceOf(state), HowTo: howTo}
	}
	return chaos.Reversal{Undone: chaos.Reverted, Evidence: evidenceOf(state)}
}

// gone reports whether every process that held the rule is. A rule without
// known holders is never gone.
func (s ruleState) gone() bool {
	return len(s.Holders) > 0 && !slices.ContainsFunc(s.Holders, targets.Process.Alive)
}

// recover waits until the rule's holders are gone or its lease has lapsed,
// whichever is first: a dead controller left no way to clear it.
func (s ruleState) recover(ctx context.Context, h chaos.Handle) chaos.Reversal {
	planned, err := targets.ParseBase(s.Planned)
	if err != nil {
		return unknown(err, "end the target's processes")
	}
	for !s.gone() {
		left := h.Lease + leaseSlack - planned.Now()
		if left <= 0 {
			return chaos.Reversal{Undone: chaos.Reverted, Evidence: fmt.Sprintf(
				"the lease of %v, which the target's nodes enforce, lapsed %v ago", h.Lease, (-left + leaseSlack).Round(time.Second))}
		}
		timer := time.NewTimer(min(left, 100*time.Millisecond))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return unknown(fmt.Errorf("the rule's lease of %v has not lapsed: %w", h.Lease, context.Cause(ctx)),
				fmt.Sprintf("wait another %v, or end %s", left.Round(time.Second), s.holderList()))
		}
	}
	return chaos.Reversal{Undone: chaos.Reverted, Evidence: "the processes that held the rule are gone"}
}

func (s ruleState) holderList() string {
	parts := make([]string, len(s.Holders))
	for i, p := range s.Holders {
		parts[i] = fmt.Sprintf("process %d (%s)", p.PID, cmp.Or(string(p.Node), "the controller"))
	}
	return cmp.Or(strings.Join(parts, ", "), "the target")
}
