package reference

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference/internal/node"
	"github.com/metachaos/metachaos/targets/reference/internal/wal"
)

// Memory is a reference cluster within this process. Its nodes call each
// other; there are no sockets, no files, and nothing but plain time, so that
// it works in a synctest bubble.
type Memory struct {
	*members
	base     targets.Base
	settings node.Settings
	disks    map[targets.NodeID]*wal.Memory

	mu      sync.RWMutex
	running map[targets.NodeID]life
}

// life is one run of a node, from start to stop.
type life struct {
	control *node.Control // of the control plane
	data    *node.Data    // of the others
	stop    func() error
}

var (
	_ targets.Target     = (*Memory)(nil)
	_ targets.Placer     = (*Memory)(nil)
	_ targets.Fetcher    = (*Memory)(nil)
	_ targets.Watcher    = (*Memory)(nil)
	_ targets.TruthLog   = (*Memory)(nil)
	_ targets.Restarter  = (*Memory)(nil)
	_ targets.Migrator   = (*Memory)(nil)
	_ targets.Cooperator = (*Memory)(nil)
)

// errDown is what the peers of a node get while it is restarted.
var errDown = errors.New("the node is down")

// StartInMemory starts a cluster and returns once every node holds its
// documents. Truth is stamped with offsets from base.
func StartInMemory(cfg Config, base targets.Base) (*Memory, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.WithDefaults()
	m := &Memory{members: newMembers(cfg), base: base, settings: cfg.settings(),
		disks: map[targets.NodeID]*wal.Memory{}, running: map[targets.NodeID]life{}}
	for _, n := range m.nodes {
		m.disks[n.ID] = &wal.Memory{}
		if err := m.start(n); err != nil {
			return nil, errors.Join(err, m.Close(context.Background()))
		}
	}
	for _, n := range m.nodes {
		if n.Role != targets.RoleControl {
			<-m.running[n.ID].data.Ready()
		}
	}
	return m, nil
}

func (m *Memory) start(n targets.Node) error {
	var l life
	if n.Role == targets.RoleControl {
		c, err := node.NewControl(m.settings, m.base, m.disks[n.ID], func(shard string) (node.Mover, error) {
			return m.dataNode(node.PrimaryID(shard))
		})
		if err != nil {
			return err
		}
		l = life{control: c, stop: c.Close}
	} else {
		var primary node.Primary
		if n.Role == targets.RoleSecondary {
			primary = primaryOf{m, node.PrimaryID(n.Shard)}
		}
		d, err := node.NewData(node.Identity{ID: n.ID, Shard: n.Shard, Role: n.Role}, m.settings, m.disks[n.ID], m, primary)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(context.Background())
		var alive sync.WaitGroup
		alive.Go(func() { d.Run(ctx) })
		l = life{data: d, stop: func() error {
			d.Drain()
			cancel()
			alive.Wait()
			return d.Close()
		}}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running[n.ID] = l
	return nil
}

// primaryOf reaches the primary of a shard, whichever life it is in.
type primaryOf struct {
	m  *Memory
	id targets.NodeID
}

func (p primaryOf) Flush(ctx context.Context, o targets.Object) (int64, error) {
	d, err := p.m.dataNode(p.id)
	if err != nil {
		return 0, err
	}
	return d.Flush(ctx, o)
}

func (p primaryOf) Tail(ctx context.Context, follower targets.NodeID, from int64, deliver func([]byte) error) error {
	d, err := p.m.dataNode(p.id)
	if err != nil {
		return err
	}
	return d.Tail(ctx, follower, from, deliver)
}

func (m *Memory) dataNode(id targets.NodeID) (*node.Data, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if d := m.running[id].data; d != nil {
		return d, nil
	}
	return nil, fmt.Errorf("node %s: %w", id, errDown)
}

func (m *Memory) controlNode() (*node.Control, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if c := m.running[node.ControlID].control; c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("node %s: %w", node.ControlID, errDown)
}

func (m *Memory) keeper(id targets.NodeID) (node.RuleKeeper, error) {
	if id == node.ControlID {
		return m.controlNode()
	}
	return m.dataNode(id)
}

// Info says what the target is and can do.
func (m *Memory) Info() targets.Info { return m.info() }

// Topology returns the membership, which does not change.
func (m *Memory) Topology(context.Context) (targets.Topology, error) {
	return m.topology(func(*targets.Node) {}), nil
}

// Place returns the object that key belongs to.
func (m *Memory) Place(key string) targets.Object { return m.objects.For(key) }

// Do performs one operation. The values of the documents are shared with the
// node and must not be changed.
func (m *Memory) Do(ctx context.Context, op targets.Op) targets.Reply {
	if err := ctx.Err(); err != nil {
		return targets.Reply{Outcome: targets.Unknown, Code: targets.CodeTimeout, Detail: err.Error(), Node: op.Node, Hops: 1}
	}
	d, err := m.dataNode(op.Node)
	if err != nil {
		return targets.Reply{Outcome: targets.Refused, Code: targets.CodeUnavailable, Detail: err.Error(), Node: op.Node, Hops: 1}
	}
	return d.Do(ctx, op)
}

// Fetch pulls entries.
func (m *Memory) Fetch(ctx context.Context, f targets.Fetch) ([]targets.Entry, error) {
	c, err := m.controlNode()
	if err != nil {
		return nil, fmt.Errorf("fetch metadata: %w", err)
	}
	return c.Fetch(ctx, f)
}

// Watch streams pushes.
func (m *Memory) Watch(ctx context.Context, client string, deliver func(targets.Push)) error {
	c, err := m.controlNode()
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	return c.Watch(ctx, client, deliver)
}

// FollowTruth streams the truth, over restarts of the control plane too.
func (m *Memory) FollowTruth(ctx context.Context, deliver func(targets.Truth)) error {
	var position int64
	for {
		c, err := m.controlNode()
		if err == nil {
			err = c.FollowTruth(ctx, position, func(t targets.Truth, next int64, _ bool) error {
				deliver(t)
				position = next
				return nil
			})
		}
		if ctx.Err() != nil {
			return err
		}
		select { // the control plane is down; its log goes on where it was
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Restart stops a node and starts it again with its disk as it was.
func (m *Memory) Restart(_ context.Context, id targets.NodeID) error {
	n, err := m.node(id)
	if err != nil {
		return fmt.Errorf("restart: %w", err)
	}
	m.mu.Lock()
	l, ok := m.running[id]
	delete(m.running, id)
	m.mu.Unlock()
	if !ok {
		return fmt.Errorf("restart node %s: %w", id, errDown)
	}
	if err := l.stop(); err != nil {
		return fmt.Errorf("restart node %s: %w", id, err)
	}
	return m.start(n) //nolint:contextcheck // a node outlives the call that started it
}

// Migrate moves an object up to a stage of its migration.
func (m *Memory) Migrate(ctx context.Context, o targets.Object, to string, stage targets.Stage) (targets.Entry, error) {
	c, err := m.controlNode()
	if err != nil {
		return targets.Entry{}, fmt.Errorf("migrate: %w", err)
	}
	return c.Migrate(ctx, o, to, stage)
}

// Rules lists the rules that SetRule accepts.
func (m *Memory) Rules() []string { return rulesKnown() }

// SetRule arms a rule.
func (m *Memory) SetRule(ctx context.Context, r targets.Rule) error {
	return m.setRule(ctx, r, m.keeper)
}

// RuleState reports on a rule.
func (m *Memory) RuleState(ctx context.Context, id string) (targets.RuleState, error) {
	return m.ruleState(ctx, id, m.keeper)
}

// ClearRule disarms a rule.
func (m *Memory) ClearRule(ctx context.Context, id string) error {
	return m.clearRule(ctx, id, m.keeper)
}

// Close stops all nodes.
func (m *Memory) Close(context.Context) error {
	m.mu.Lock()
	running := m.running
	m.running = map[targets.NodeID]life{}
	m.mu.Unlock()
	var errs []error
	for _, l := range running {
		errs = append(errs, l.stop())
	}
	return errors.Join(errs...)
}
