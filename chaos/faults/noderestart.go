package faults

import (
	"context"
	"fmt"
	"strings"

	"github.com/metachaos/metachaos/chaos"
	"github.com/metachaos/metachaos/targets"
)

type nodeRestart struct{ target targets.Target }

var _ chaos.Fault = (*nodeRestart)(nil)

// NodeRestart returns the action that restarts nodes, whose ownership lists
// are empty afterwards.
func NodeRestart(t targets.Target) chaos.Fault { return &nodeRestart{target: t} }

type nodeRestartConfig struct {
	MaxNodes int `yaml:"max_nodes"`
}

// nodeRestartState is the record of a restart: the nodes, and their processes
// as they were before, where they have any.
type nodeRestartState struct {
	Nodes  []targets.NodeID  `json:"nodes"`
	Before []targets.Process `json:"before,omitempty"`
}

func (f *nodeRestart) Describe() chaos.Description {
	return chaos.Description{
		Name:    "node.restart",
		Summary: "Restarts the selected node; its ownership list is empty afterwards.",
		Instant: true,
		Needs:   []targets.Capability{targets.CapRestart},
		Fields: []chaos.Field{
			{Name: "max_nodes", Type: "integer", Default: "1", Summary: "How many nodes may be selected; they restart one after another."},
		},
	}
}

func (f *nodeRestart) configure(step chaos.Step) (nodeRestartConfig, error) {
	c := nodeRestartConfig{MaxNodes: 1}
	if err := decode(step, &c); err != nil {
		return c, err
	}
	if c.MaxNodes < 1 {
		return c, fmt.Errorf("max_nodes is %d: want 1 or more", c.MaxNodes)
	}
	return c, nil
}

func (f *nodeRestart) Validate(step chaos.Step) error {
	_, err := f.configure(step)
	return err
}

func (f *nodeRestart) restarter() (targets.Restarter, error) {
	if f.target == nil {
		return nil, errNoTarget
	}
	r, ok := f.target.(targets.Restarter)
	if !ok {
		return nil, fmt.Errorf("the target %q cannot restart nodes", f.target.Info().Kind)
	}
	return r, nil
}

func (f *nodeRestart) Plan(_ context.Context, step chaos.Step, scope chaos.Scope) (chaos.Handle, error) {
	c, err := f.configure(step)
	if err != nil {
		return chaos.Handle{}, err
	}
	if _, err := f.restarter(); err != nil {
		return chaos.Handle{}, err
	}
	nodes, err := selectNodes(scope.Topology, step.On, c.MaxNodes)
	if err != nil {
		return chaos.Handle{}, err
	}
	var s nodeRestartState
	var touches []string
	for _, n := range nodes {
		s.Nodes = append(s.Nodes, n.ID)
		touch := fmt.Sprintf("node %s: restart", n.ID)
		if p, ok := processOf(scope.Processes, n.ID); ok {
			s.Before = append(s.Before, p)
			touch = fmt.Sprintf("node %s (pid %d): restart", n.ID, p.PID)
		}
		touches = append(touches, touch)
	}
	return newHandle(step, touches, s)
}

func (f *nodeRestart) Inject(ctx context.Context, h chaos.Handle) error {
	var s nodeRestartState
	if err := decodeState(h, &s); err != nil {
		return err
	}
	r, err := f.restarter()
	if err != nil {
		return err
	}
	for _, node := range s.Nodes {
		if err := r.Restart(ctx, node); err != nil {
			return fmt.Errorf("restart node %s: %w", node, err)
		}
	}
	return nil
}

// Status compares the nodes' processes with those before.
func (f *nodeRestart) Status(_ context.Context, h chaos.Handle) (chaos.Status, error) {
	var s nodeRestartState
	if err := decodeState(h, &s); err != nil {
		return chaos.Status{}, err
	}
	owner, ok := f.target.(targets.Processes)
	if !ok || len(s.Before) == 0 {
		return chaos.Status{Evidence: "the target declares no processes to tell a restart by"}, nil
	}
	now := owner.Processes()
	status := chaos.Status{Effective: true}
	var changes []string
	for _, before := range s.Before {
		after, ok := processOf(now, before.Node)
		if !ok || after == before {
			status.Effective = false
			changes = append(changes, fmt.Sprintf("node %s: still pid %d, or none", before.Node, before.PID))
			continue
		}
		changes = append(changes, fmt.Sprintf("node %s: pid %d, then %d", before.Node, before.PID, after.PID))
	}
	status.Evidence = strings.Join(changes, ", ")
	return status, nil
}

func (f *nodeRestart) Revert(context.Context, chaos.Handle) chaos.Reversal {
	return nothingToTakeBack()
}

func (f *nodeRestart) Recover(context.Context, chaos.Handle) chaos.Reversal {
	return nothingToTakeBack()
}
