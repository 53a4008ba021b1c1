package reference

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference/internal/node"
)

// version of the reference target, as Info tells it.
const version = "1"

// members is what a cluster is, however it runs: who its nodes are, where its
// keys go, and which rules were armed where.
type members struct {
	config  Config
	objects Objects
	nodes   []targets.Node // without addresses

	mu    sync.Mutex
	rules map[string][]targets.NodeID // who was asked to keep a rule
}

func newMembers(c Config) *members {
	m := &members{config: c, objects: NewObjects(c.Objects), rules: map[string][]targets.NodeID{}}
	m.nodes = append(m.nodes, targets.Node{ID: node.ControlID, Role: targets.RoleControl, Index: 1})
	for _, shard := range c.settings().Shards {
		m.nodes = append(m.nodes, targets.Node{ID: node.PrimaryID(shard), Shard: shard, Role: targets.RolePrimary, Index: 1})
		for i := 1; i < c.Replicas; i++ {
			m.nodes = append(m.nodes, targets.Node{ID: node.MemberID(shard, i), Shard: shard, Role: targets.RoleSecondary, Index: i})
		}
	}
	return m
}

// info lists what every way of running offers, and more.
func (m *members) info(more ...targets.Capability) targets.Info {
	can := []targets.Capability{targets.CapEpochs, targets.CapFetch, targets.CapWatch, targets.CapTruth,
		targets.CapRestart, targets.CapRules}
	if m.config.Shards > 1 {
		can = append(can, targets.CapMigrate)
	}
	if m.config.Replicas > 1 {
		can = append(can, targets.CapReplicas)
	}
	return targets.Info{Kind: "reference", Version: version, Capabilities: append(can, more...)}
}

// topology adds what changes, the addresses and pids.
func (m *members) topology(complete func(*targets.Node)) targets.Topology {
	t := targets.Topology{Objects: append([]targets.Object(nil), m.objects...), Documents: m.config.Documents}
	for _, n := range m.nodes {
		complete(&n)
		t.Nodes = append(t.Nodes, n)
	}
	return t
}

func (m *members) node(id targets.NodeID) (targets.Node, error) {
	n, ok := targets.Topology{Nodes: m.nodes}.Node(id)
	if !ok {
		return n, fmt.Errorf("there is no node %q; there are %s", id, m.names())
	}
	return n, nil
}

func (m *members) names() string {
	names := make([]string, len(m.nodes))
	for i, n := range m.nodes {
		names[i] = string(n.ID)
	}
	return strings.Join(names, ", ")
}

// rulesKnown lists the rules that SetRule accepts.
func rulesKnown() []string {
	return []string{node.RulePushDrop, node.RuleTTLSynchronize, node.RulePrimaryFreeze}
}

// keepersOf selects the nodes that a rule is for.
func (m *members) keepersOf(r targets.Rule) ([]targets.NodeID, error) {
	role := targets.RoleControl
	switch r.Name {
	case node.RulePushDrop, node.RuleTTLSynchronize:
	case node.RulePrimaryFreeze:
		role = targets.RolePrimary
	default:
		return nil, fmt.Errorf("set rule %s: the reference target has no rule %q; it has %v", r.ID, r.Name, rulesKnown())
	}
	on := r.On
	if on.Role == "" {
		on.Role = role
	}
	var out []targets.NodeID
	for _, n := range (targets.Topology{Nodes: m.nodes}).Select(on) {
		if n.Role == role {
			out = append(out, n.ID)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("set rule %s: %s acts on nodes of role %s, and %+v selects none of them", r.ID, r.Name, role, r.On)
	}
	return out, nil
}

// setRule arms a rule on all its keepers or on none.
func (m *members) setRule(ctx context.Context, r targets.Rule, keeper func(targets.NodeID) (node.RuleKeeper, error)) error {
	ids, err := m.keepersOf(r)
	if err != nil {
		return err
	}
	m.mu.Lock()
	_, taken := m.rules[r.ID]
	if !taken {
		m.rules[r.ID] = ids
	}
	m.mu.Unlock()
	if taken {
		return fmt.Errorf("set rule %s: a rule of that id was set before; give each rule an id of its own", r.ID)
	}
	for _, id := range ids {
		k, err := keeper(id)
		if err == nil {
			err = k.SetRule(ctx, r)
		}
		if err != nil {
			undo := m.clearRule(context.WithoutCancel(ctx), r.ID, keeper)
			return errors.Join(fmt.Errorf("arm on node %s: %w", id, err), undo)
		}
	}
	return nil
}

func (m *members) keepers(id string) []targets.NodeID {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rules[id]
}

// ruleState adds up what the keepers say.
func (m *members) ruleState(ctx context.Context, id string, keeper func(targets.NodeID) (node.RuleKeeper, error)) (targets.RuleState, error) {
	var sum targets.RuleState
	for _, n := range m.keepers(id) {
		k, err := keeper(n)
		if err != nil {
			return sum, fmt.Errorf("ask node %s for rule %s: %w", n, id, err)
		}
		s, err := k.RuleState(ctx, id)
		if err != nil {
			return sum, fmt.Errorf("ask node %s for rule %s: %w", n, id, err)
		}
		sum.Armed = sum.Armed || s.Armed
		sum.Hits += s.Hits
		sum.Seen += s.Seen
	}
	return sum, nil
}

// clearRule asks every keeper, also after one has failed.
func (m *members) clearRule(ctx context.Context, id string, keeper func(targets.NodeID) (node.RuleKeeper, error)) error {
	var errs []error
	for _, n := range m.keepers(id) {
		k, err := keeper(n)
		if err == nil {
			err = k.ClearRule(ctx, id)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("clear rule %s on node %s: %w", id, n, err))
		}
	}
	return errors.Join(errs...)
}
