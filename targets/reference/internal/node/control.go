package node

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference/internal/wal"
)

// ControlID is the name of the control plane's node.
const ControlID targets.NodeID = "control"

// Control is the control plane: it owns the truth, hands out entries, pushes
// changes and moves objects between shards.
//
// Its log is the truth log itself. What was committed is read back from it, so
// that a restarted control plane never takes an epoch back.
type Control struct {
	settings Settings
	base     targets.Base
	movers   func(shard string) (Mover, error)
	log      *wal.Log
	rules    *rulebook
	turns    map[targets.Object]chan struct{} // held by the migration of the object
	draining chan struct{}
	drain    sync.Once

	mu          sync.Mutex // also orders the log: whoever appends holds it
	entries     map[targets.Object]*entryState
	subscribers map[uint64]*subscriber
	lastID      uint64 // of subscriptions
}

// entryState is the truth about one object.
type entryState struct {
	entry    targets.Entry
	previous string // the owner before, which holds orphans until it was cleaned
	// The migration under way, if to is not empty.
	to      string
	reached targets.Stage
	token   string // of the donor's critical section, in stage copied
}

var (
	_ ControlPlane = (*Control)(nil)
	_ RuleKeeper   = (*Control)(nil)
)

// NewControl opens the control plane on its storage, which it owns from then
// on. Records are stamped with offsets from base. Movers gives access to the
// primary of a shard; it is called for every step of a migration, so that it
// can follow a restarted node.
func NewControl(s Settings, base targets.Base, storage wal.Storage, movers func(shard string) (Mover, error)) (*Control, error) {
	c := &Control{settings: s, base: base, movers: movers, rules: newRulebook(),
		turns: make(map[targets.Object]chan struct{}, len(s.Objects)), draining: make(chan struct{}),
		entries: make(map[targets.Object]*entryState, len(s.Objects)), subscribers: map[uint64]*subscriber{}}
	for _, o := range s.Objects {
		c.entries[o] = &entryState{}
		c.turns[o] = make(chan struct{}, 1)
	}
	var err error
	c.log, err = wal.Open(storage, func(payload []byte) error {
		var t targets.Truth
		if err := json.Unmarshal(payload, &t); err != nil {
			return err
		}
		c.replay(t)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("open control plane: %w", err)
	}
	var first []targets.Truth
	for i, o := range s.Objects {
		if c.entries[o].entry.Epoch == 0 {
			t := targets.Truth{Kind: targets.TruthCommit, Object: o, Epoch: 1, Owner: s.home(i)}
			c.replay(t)
			first = append(first, t)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.record(first...); err != nil {
		return nil, fmt.Errorf("open control plane: %w", err)
	}
	return c, nil
}

// replay brings the state up to what a record says.
func (c *Control) replay(t targets.Truth) {
	e, ok := c.entries[t.Object]
	if !ok {
		return // a grant or push of several objects
	}
	switch t.Kind {
	case targets.TruthCommit:
		e.previous = e.entry.Owner
		e.entry = targets.Entry{Object: t.Object, Epoch: t.Epoch, Owner: t.Owner}
	case targets.TruthStage:
		e.to, e.reached = t.To, t.Stage
		if t.Stage == targets.StageCleaned {
			e.to, e.reached, e.token = "", "", ""
		}
	default: // grants and pushes change nothing
	}
}

// record stamps and appends. The caller holds the lock.
func (c *Control) record(truths ...targets.Truth) error {
	if len(truths) == 0 {
		return nil
	}
	payloads := make([][]byte, len(truths))
	now := c.base.Now()
	for i, t := range truths {
		t.At = now
		payload, err := json.Marshal(t)
		if err != nil {
			return fmt.Errorf("record truth: %w", err)
		}
		payloads[i] = payload
	}
	if _, err := c.log.Append(payloads...); err != nil {
		return fmt.Errorf("record truth: %w", err)
	}
	return nil
}

// Fetch hands out entries and records that it did.
func (c *Control) Fetch(ctx context.Context, f targets.Fetch) ([]targets.Entry, error) {
	if c.settings.PullDelay > 0 {
		delay := time.NewTimer(c.settings.PullDelay)
		defer delay.Stop()
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("fetch metadata: %w", ctx.Err())
		case <-delay.C:
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	wanted := f.Objects
	if len(wanted) == 0 {
		wanted = c.settings.Objects
	}
	out := make([]targets.Entry, 0, len(wanted))
	for _, o := range wanted {
		if e, ok := c.entries[o]; ok {
			out = append(out, e.entry)
		}
	}
	grant := targets.Truth{Kind: targets.TruthGrant, To: f.Client, Cause: f.Cause, Objects: len(out)}
	if len(out) == 1 {
		grant.Object, grant.Epoch, grant.Owner, grant.Objects = out[0].Object, out[0].Epoch, out[0].Owner, 0
	}
	if err := c.record(grant); err != nil {
		return nil, fmt.Errorf("fetch metadata: %w", err)
	}
	return out, nil
}

// SetRule arms push.drop, or does ttl.synchronize.
func (c *Control) SetRule(_ context.Context, r targets.Rule) error {
	switch r.Name {
	case RulePushDrop:
		drop, err := parseDrop(r)
		if err != nil {
			return err
		}
		_, err = c.rules.arm(r, drop)
		return err
	case RuleTTLSynchronize:
		in, err := parseSynchronize(r)
		if err != nil {
			return err
		}
		armed, err := c.rules.arm(r, dropConfig{})
		if err != nil {
			return err
		}
		reached, err := c.synchronize(in)
		c.rules.count(armed, reached, reached)
		return err
	}
	return unknownRule(r, ControlID, RulePushDrop, RuleTTLSynchronize)
}

// RuleState reports on a rule.
func (c *Control) RuleState(_ context.Context, id string) (targets.RuleState, error) {
	return c.rules.state(id), nil
}

// ClearRule disarms a rule.
func (c *Control) ClearRule(_ context.Context, id string) error {
	c.rules.clear(id)
	return nil
}

// Drain ends the streams that the control plane serves.
func (c *Control) Drain() { c.drain.Do(func() { close(c.draining) }) }

// Close closes the log.
func (c *Control) Close() error {
	c.Drain()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.log.Close()
}
