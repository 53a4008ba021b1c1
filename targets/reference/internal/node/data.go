package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference/internal/wal"
)

// Data is a data node: a primary, which takes the writes of its shard, or a
// secondary, which follows its primary's log. Everything it keeps is in the
// log; the ownership list is in memory only.
type Data struct {
	self     Identity
	settings Settings
	control  ControlPlane
	primary  Primary // of a secondary; nil on a primary
	known    map[targets.Object]struct{}
	log      *wal.Log
	rules    *rulebook
	flights  *flights
	draining chan struct{}
	drain    sync.Once
	ready    chan struct{}

	mu        sync.RWMutex // also orders the log: whoever appends holds it
	state     state
	list      map[targets.Object]targets.Entry // the ownership list
	sections  map[targets.Object]section
	followers map[targets.NodeID]int64 // positions that followers acknowledged
	acked     chan struct{}            // closed and replaced when one moves
}

var (
	_ Primary    = (*Data)(nil)
	_ Mover      = (*Data)(nil)
	_ RuleKeeper = (*Data)(nil)
)

// NewData opens the node on its storage, which it owns from then on. A
// primary has a nil Primary. Call Run to bring the node to life.
func NewData(self Identity, s Settings, storage wal.Storage, control ControlPlane, primary Primary) (*Data, error) {
	d := &Data{self: self, settings: s, control: control, primary: primary,
		known: make(map[targets.Object]struct{}, len(s.Objects)),
		rules: newRulebook(), flights: newFlights(len(s.Objects)),
		draining: make(chan struct{}), ready: make(chan struct{}),
		state: newState(), list: map[targets.Object]targets.Entry{}, sections: map[targets.Object]section{},
		followers: map[targets.NodeID]int64{}, acked: make(chan struct{})}
	for _, o := range s.Objects {
		d.known[o] = struct{}{}
	}
	var err error
	d.log, err = wal.Open(storage, func(payload []byte) error {
		r, err := decodeRecord(payload)
		d.state.apply(r)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open node %s: %w", self.ID, err)
	}
	if d.isPrimary() && !d.state.seeded {
		if _, err := d.append(s.seed(self.Shard)...); err != nil {
			return nil, fmt.Errorf("load documents of node %s: %w", self.ID, err)
		}
	}
	if s.Refresh == FromDisk {
		for o, e := range d.state.copies {
			d.list[o] = e
		}
	}
	if d.state.seeded {
		close(d.ready)
	}
	return d, nil
}

func (d *Data) isPrimary() bool { return d.self.Role == targets.RolePrimary }

// Run refreshes and, on a secondary, follows the primary, until ctx ends.
func (d *Data) Run(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() { d.flights.run(ctx, d.settings.RefreshLimit, d.refresh) })
	if d.primary != nil {
		all.Go(func() { d.follow(ctx) })
	}
	all.Wait()
}

// Ready is closed once the node holds the documents that were loaded. A
// restarted node is ready at once: it need not reach its primary.
func (d *Data) Ready() <-chan struct{} { return d.ready }

// Drain ends the streams that the node serves and drops the writes that wait,
// so that a graceful stop does not wait for them.
func (d *Data) Drain() { d.drain.Do(func() { close(d.draining) }) }

// Close closes the log. The node must have been drained and Run have ended.
func (d *Data) Close() error {
	d.Drain()
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.log.Close()
}

// append logs records and applies them. The caller holds the lock, or is the
// only one who knows the node.
func (d *Data) append(records ...record) (position int64, err error) {
	payloads := make([][]byte, len(records))
	for i, r := range records {
		payloads[i] = r.encode()
	}
	position, err = d.log.Append(payloads...)
	if err != nil {
		return 0, err
	}
	for _, r := range records {
		d.state.apply(r)
	}
	return position, nil
}

// learn puts an entry into the ownership list unless it holds one as new. The
// caller holds the lock.
func (d *Data) learn(e targets.Entry) {
	if held, ok := d.list[e.Object]; !ok || e.Epoch > held.Epoch {
		d.list[e.Object] = e
	}
}

// passGate waits while a rule freezes the write path. It is passed before the
// lock is taken, by documents and metadata alike: reads and health go on.
func (d *Data) passGate(ctx context.Context) error {
	var last *rule
	for {
		r := d.rules.active(RulePrimaryFreeze)
		if r == nil {
			return ctx.Err()
		}
		if r != last {
			d.rules.count(r, 1, 1)
			last = r
		}
		lapse := time.NewTimer(time.Until(r.until))
		select {
		case <-ctx.Done():
			lapse.Stop()
			return ctx.Err()
		case <-d.draining:
			lapse.Stop()
			return ErrStopping
		case <-r.cleared:
			lapse.Stop()
		case <-lapse.C:
		}
	}
}

// SetRule arms primary.freeze, which stalls the write path of a primary.
func (d *Data) SetRule(_ context.Context, r targets.Rule) error {
	if r.Name != RulePrimaryFreeze {
		return unknownRule(r, d.self.ID, RulePrimaryFreeze)
	}
	if !d.isPrimary() {
		return fmt.Errorf("set rule %s: node %s is no primary", r.ID, d.self.ID)
	}
	if err := parseFreeze(r); err != nil {
		return err
	}
	_, err := d.rules.arm(r, dropConfig{})
	return err
}

// RuleState reports on a rule.
func (d *Data) RuleState(_ context.Context, id string) (targets.RuleState, error) {
	return d.rules.state(id), nil
}

// ClearRule disarms a rule; what waited for it goes on.
func (d *Data) ClearRule(_ context.Context, id string) error {
	d.rules.clear(id)
	return nil
}

// errNotPrimary refuses what only a primary can do.
func (d *Data) needPrimary(what string) error {
	if d.isPrimary() {
		return nil
	}
	return fmt.Errorf("%s on node %s: %w", what, d.self.ID, errNotPrimary)
}

var errNotPrimary = errors.New("the node is no primary")
