package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/metachaos/metachaos/chaos"
	"github.com/metachaos/metachaos/targets"
)

const namePrimaryFreeze = "primary.freeze"

// How a primary is frozen. Stopping silences its heartbeats, so that an
// election may follow; a write stall does not.
const (
	freezeStop       = "stop"
	freezeWriteStall = "write-stall"
)

type primaryFreeze struct {
	ruling
	held claims[targets.Process]
}

var (
	_ chaos.Fault     = (*primaryFreeze)(nil)
	_ chaos.StepNeeds = (*primaryFreeze)(nil)
)

// PrimaryFreeze returns the fault that freezes primaries. In mode stop it
// works on the declared processes alone, and t may be nil.
func PrimaryFreeze(t targets.Target, opts Options) chaos.Fault {
	return &primaryFreeze{ruling: ruling{target: t, opts: opts}}
}

type freezeConfig struct {
	Mode     string `yaml:"mode"`
	MaxNodes int    `yaml:"max_nodes"`
}

// freezeState is the record of a freeze: either stopped processes or a rule.
type freezeState struct {
	Processes []targets.Process `json:"processes,omitempty"`
	Rule      *ruleState        `json:"rule,omitempty"`
}

func (f *primaryFreeze) Describe() chaos.Description {
	return chaos.Description{
		Name:    namePrimaryFreeze,
		Summary: "Freezes the selected primary: stops its whole process, or makes its writes alone hang.",
		Fields: []chaos.Field{
			{Name: "mode", Type: "stop | write-stall", Default: freezeStop,
				Summary: "stop halts the process with SIGSTOP; write-stall lets it answer heartbeats and reads."},
			{Name: "max_nodes", Type: "integer", Default: "1", Summary: "How many primaries may be selected."},
		},
	}
}

func (f *primaryFreeze) configure(step chaos.Step) (freezeConfig, error) {
	c := freezeConfig{Mode: freezeStop, MaxNodes: 1}
	if err := decode(step, &c); err != nil {
		return c, err
	}
	if c.Mode != freezeStop && c.Mode != freezeWriteStall {
		return c, fmt.Errorf("mode is %q: want %s or %s", c.Mode, freezeStop, freezeWriteStall)
	}
	if c.MaxNodes < 1 {
		return c, fmt.Errorf("max_nodes is %d: want 1 or more", c.MaxNodes)
	}
	if r := step.On.Role; r != "" && r != targets.RolePrimary {
		return c, fmt.Errorf("on.role is %q: this fault strikes primaries; leave role out", r)
	}
	return c, nil
}

func (f *primaryFreeze) Validate(step chaos.Step) error {
	_, err := f.configure(step)
	return err
}

// NeedsOf names the capability that the step's mode works by.
func (f *primaryFreeze) NeedsOf(step chaos.Step) ([]targets.Capability, string) {
	if c, err := f.configure(step); err == nil && c.Mode == freezeWriteStall {
		return []targets.Capability{targets.CapRules}, namePrimaryFreeze
	}
	return []targets.Capability{targets.CapProcesses}, ""
}

func (f *primaryFreeze) Plan(_ context.Context, step chaos.Step, scope chaos.Scope) (chaos.Handle, error) {
	c, err := f.configure(step)
	if err != nil {
		return chaos.Handle{}, err
	}
	step.On.Role = targets.RolePrimary
	nodes, err := selectNodes(scope.Topology, step.On, c.MaxNodes)
	if err != nil {
		return chaos.Handle{}, err
	}
	if c.Mode == freezeWriteStall {
		rule, err := f.plan(step, scope, namePrimaryFreeze, map[string]string{"mode": freezeWriteStall})
		if err != nil {
			return chaos.Handle{}, err
		}
		return newHandle(step, []string{rule.touches()}, freezeState{Rule: &rule})
	}
	var s freezeState
	var touches []string
	for _, n := range nodes {
		p, ok := processOf(scope.Processes, n.ID)
		if !ok {
			return chaos.Handle{}, fmt.Errorf("the target declares no process for node %s, so it cannot be stopped", n.ID)
		}
		if err := stoppable(p); err != nil {
			return chaos.Handle{}, err
		}
		s.Processes = append(s.Processes, p)
		touches = append(touches, fmt.Sprintf("pid %d (%s): SIGSTOP", p.PID, n.ID))
	}
	return newHandle(step, touches, s)
}

// stoppable refuses what may not be signalled, and a process that somebody
// else has stopped: reverting would wake it.
func stoppable(p targets.Process) error {
	if err := chaos.Touchable(p); err != nil {
		return err
	}
	if !p.Alive() {
		return fmt.Errorf("process %d (%s) is gone", p.PID, p.Node)
	}
	if p.State() == 'T' {
		return fmt.Errorf("process %d (%s) is stopped already, by somebody else", p.PID, p.Node)
	}
	return nil
}

func (f *primaryFreeze) Inject(ctx context.Context, h chaos.Handle) error {
	var s freezeState
	if err := decodeState(h, &s); err != nil {
		return err
	}
	if s.Rule != nil {
		return f.inject(ctx, h, *s.Rule)
	}
	if err := f.held.take(h.ID, s.Processes); err != nil {
		return err
	}
	for _, p := range s.Processes {
		if err := stoppable(p); err != nil {
			return err
		}
		if err := chaos.Signal(p, syscall.SIGSTOP); err != nil {
			return err
		}
		// Stopping is not at once: a process in a system call stops as it returns.
		if !awaitState(ctx, p, func(state byte) bool { return state == 'T' }) {
			return fmt.Errorf("process %d (%s) does not stop: its state is %q", p.PID, p.Node, p.State())
		}
	}
	return nil
}

func (f *primaryFreeze) Status(ctx context.Context, h chaos.Handle) (chaos.Status, error) {
	var s freezeState
	if err := decodeState(h, &s); err != nil {
		return chaos.Status{}, err
	}
	if s.Rule != nil {
		return f.status(ctx, *s.Rule)
	}
	status := chaos.Status{Effective: true}
	var seen []string
	for _, p := range s.Processes {
		state := p.State()
		status.Effective = status.Effective && state == 'T'
		seen = append(seen, fmt.Sprintf("process %d (%s) %s", p.PID, p.Node, stateWord(state)))
	}
	status.Evidence = strings.Join(seen, ", ")
	return status, nil
}

func (f *primaryFreeze) Revert(ctx context.Context, h chaos.Handle) chaos.Reversal {
	var s freezeState
	if err := decodeState(h, &s); err != nil {
		return unknown(err, "")
	}
	if s.Rule != nil {
		return f.revert(ctx, h, *s.Rule)
	}
	rev := f.thaw(ctx, h.ID, s.Processes)
	if rev.Undone == chaos.Reverted {
		f.held.release(h.ID)
	}
	return rev
}

func (f *primaryFreeze) Recover(ctx context.Context, h chaos.Handle) chaos.Reversal {
	var s freezeState
	if err := decodeState(h, &s); err != nil {
		return unknown(err, "")
	}
	if s.Rule != nil {
		return s.Rule.recover(ctx, h)
	}
	return f.thaw(ctx, h.ID, s.Processes)
}

// thaw continues every process, also when one of them fails, and probes each.
func (f *primaryFreeze) thaw(ctx context.Context, id string, all []targets.Process) chaos.Reversal {
	var seen, left []string
	for _, p := range all {
		if f.held.foreign(id, p) {
			seen = append(seen, fmt.Sprintf("process %d (%s) is left to the injection that holds it", p.PID, p.Node))
			continue
		}
		err := chaos.Signal(p, syscall.SIGCONT)
		if err == nil && !awaitState(ctx, p, func(state byte) bool { return state != 'T' }) {
			err = errors.New("it does not continue")
		}
		if err != nil && !errors.Is(err, os.ErrProcessDone) {
			left = append(left, fmt.Sprintf("kill -CONT %d", p.PID))
			seen = append(seen, fmt.Sprintf("process %d (%s): %v", p.PID, p.Node, err))
			continue
		}
		seen = append(seen, fmt.Sprintf("process %d (%s) %s", p.PID, p.Node, stateWord(p.State())))
	}
	rev := chaos.Reversal{Undone: chaos.Reverted, Evidence: strings.Join(seen, ", ")}
	if len(left) > 0 {
		rev.Undone, rev.HowTo = chaos.NotReverted, strings.Join(left, "; ")
	}
	return rev
}

// stateLimit bounds the wait for the kernel to stop or continue a process.
const stateLimit = 5 * time.Second

// awaitState reports whether the process came into the state, or went away,
// in time.
func awaitState(ctx context.Context, p targets.Process, ok func(byte) bool) bool {
	ctx, cancel := context.WithTimeout(ctx, stateLimit)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok(p.State()) {
			return true
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ok(p.State())
		}
	}
}

func stateWord(state byte) string {
	switch state {
	case 0, 'Z', 'X':
		return "is gone"
	case 'T':
		return "is stopped"
	default:
		return fmt.Sprintf("runs (state %c)", state)
	}
}
