package reference

import (
	"context"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference/internal/node"
	"github.com/metachaos/metachaos/targets/reference/internal/wire"
)

// Info says what the target is and can do.
func (c *Cluster) Info() targets.Info { return c.info(targets.CapProcesses, targets.CapProxy) }

// Topology returns the membership with the addresses and pids of now.
func (c *Cluster) Topology(context.Context) (targets.Topology, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.topology(func(n *targets.Node) {
		if one, ok := c.children[n.ID]; ok {
			n.Addr, n.PID = one.addr, one.process.PID
		}
	}), nil
}

// Place returns the object that key belongs to.
func (c *Cluster) Place(key string) targets.Object { return c.objects.For(key) }

// Do performs one operation.
func (c *Cluster) Do(ctx context.Context, op targets.Op) targets.Reply {
	return c.data(op.Node).Do(ctx, op)
}

// Fetch pulls entries.
func (c *Cluster) Fetch(ctx context.Context, f targets.Fetch) ([]targets.Entry, error) {
	return c.control().Fetch(ctx, f)
}

// Watch streams pushes. It returns an error when the stream breaks, also by
// Reroute and by a restart of the control plane; watching again then goes the
// new way.
func (c *Cluster) Watch(ctx context.Context, client string, deliver func(targets.Push)) error {
	return c.push.Watch(ctx, client, deliver)
}

// FollowTruth streams the truth, over restarts of the control plane too.
func (c *Cluster) FollowTruth(ctx context.Context, deliver func(targets.Truth)) error {
	return c.control().FollowTruth(ctx, deliver)
}

// Migrate moves an object up to a stage of its migration.
func (c *Cluster) Migrate(ctx context.Context, o targets.Object, to string, stage targets.Stage) (targets.Entry, error) {
	return c.control().Migrate(ctx, o, to, stage)
}

// Rules lists the rules that SetRule accepts.
func (c *Cluster) Rules() []string { return rulesKnown() }

// SetRule arms a rule.
func (c *Cluster) SetRule(ctx context.Context, r targets.Rule) error {
	return c.setRule(ctx, r, c.keeper)
}

// RuleState reports on a rule.
func (c *Cluster) RuleState(ctx context.Context, id string) (targets.RuleState, error) {
	return c.ruleState(ctx, id, c.keeper)
}

// ClearRule disarms a rule.
func (c *Cluster) ClearRule(ctx context.Context, id string) error {
	return c.clearRule(ctx, id, c.keeper)
}

func (c *Cluster) control() wire.Control { return wire.Control{Peers: c.peers} }

func (c *Cluster) data(id targets.NodeID) wire.Node { return wire.Node{Peers: c.peers, ID: id} }

// keeper finds the rules of a node; data nodes and the control plane serve
// them alike.
func (c *Cluster) keeper(id targets.NodeID) (node.RuleKeeper, error) { return c.data(id), nil }
