package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metachaos/metachaos/chaos"
	"github.com/metachaos/metachaos/chaos/chaostest"
	"github.com/metachaos/metachaos/targets"
)

// fakeTarget is a cluster of two shards whose nodes are sleeping processes,
// and whose rules, migrations and push link live in memory.
type fakeTarget struct {
	t    *testing.T
	link *fakeLink // nil unless asked for

	mu       sync.Mutex
	nodes    []targets.Node
	sleepers map[targets.NodeID]*chaostest.Sleeper
	entries  map[targets.Object]targets.Entry
	stages   map[targets.Object]targets.Stage
	rules    map[string]*fakeRule

	ruleErr    error // of every call about rules
	migrateErr map[targets.Stage]error
	slow       time.Duration // of restarts and migrations
}

type fakeRule struct {
	targets.Rule
	until time.Time
	state targets.RuleState
}

var (
	_ targets.Target     = (*fakeTarget)(nil)
	_ targets.Cooperator = (*fakeTarget)(nil)
	_ targets.Processes  = (*fakeTarget)(nil)
	_ targets.Restarter  = (*fakeTarget)(nil)
	_ targets.Migrator   = (*fakeTarget)(nil)
	_ targets.Fetcher    = (*fakeTarget)(nil)
	_ targets.Proxied    = (*fakeTarget)(nil)
)

func newFakeTarget(t *testing.T) *fakeTarget {
	t.Helper()
	f := &fakeTarget{t: t, sleepers: map[targets.NodeID]*chaostest.Sleeper{}, entries: map[targets.Object]targets.Entry{},
		stages: map[targets.Object]targets.Stage{}, rules: map[string]*fakeRule{}, migrateErr: map[targets.Stage]error{}}
	f.nodes = []targets.Node{{ID: "control", Role: targets.RoleControl, Index: 1}}
	for _, shard := range []string{"s1", "s2"} {
		f.nodes = append(f.nodes, targets.Node{ID: targets.NodeID(shard + "-0"), Shard: shard, Role: targets.RolePrimary, Index: 1},
			targets.Node{ID: targets.NodeID(shard + "-1"), Shard: shard, Role: targets.RoleSecondary, Index: 1})
	}
	for _, n := range f.nodes {
		f.sleepers[n.ID] = chaostest.StartSleeper(t, n.ID)
	}
	for i := range 10 {
		o := targets.Object{Kind: targets.KindRoute, ID: fmt.Sprintf("r%d", i)}
		f.entries[o] = targets.Entry{Object: o, Epoch: 3, Owner: []string{"s1", "s2"}[i%2]}
	}
	return f
}

func (f *fakeTarget) Info() targets.Info { return targets.Info{Kind: "fake"} }

func (f *fakeTarget) Topology(context.Context) (targets.Topology, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	top := targets.Topology{Nodes: slices.Clone(f.nodes)}
	for i, n := range top.Nodes {
		top.Nodes[i].PID = f.sleepers[n.ID].PID
	}
	for o := range f.entries {
		top.Objects = append(top.Objects, o)
	}
	slices.SortFunc(top.Objects, func(a, b targets.Object) int { return strings.Compare(a.ID, b.ID) })
	return top, nil
}

func (f *fakeTarget) Do(context.Context, targets.Op) targets.Reply { return targets.Reply{} }

func (f *fakeTarget) Close(context.Context) error { return nil }

func (f *fakeTarget) Processes() []targets.Process {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []targets.Process
	for _, n := range f.nodes {
		out = append(out, f.sleepers[n.ID].Process)
	}
	return out
}

func (f *fakeTarget) scope(ctx context.Context) (chaos.Scope, error) {
	top, err := f.Topology(ctx)
	return chaos.Scope{Info: f.Info(), Topology: top, Processes: f.Processes()}, err
}

func (f *fakeTarget) crash(*testing.T) {
	for _, s := range f.sleepers {
		s.End()
	}
}

func (f *fakeTarget) Restart(ctx context.Context, node targets.NodeID) error {
	f.sleepers[node].End()
	if err := pause(ctx, f.slow); err != nil {
		return err
	}
	fresh := chaostest.StartSleeper(f.t, node)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sleepers[node] = fresh
	return nil
}

func (f *fakeTarget) Fetch(_ context.Context, q targets.Fetch) ([]targets.Entry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []targets.Entry
	for _, o := range q.Objects {
		if e, ok := f.entries[o]; ok {
			out = append(out, e)
		}
	}
	return out, nil
}

func (f *fakeTarget) Migrate(ctx context.Context, o targets.Object, to string, stage targets.Stage) (targets.Entry, error) {
	if err := pause(ctx, f.slow); err != nil {
		return targets.Entry{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.migrateErr[stage]; err != nil {
		return targets.Entry{}, err
	}
	e := f.entries[o]
	if e.Owner == to {
		if stage == targets.StageCleaned {
			delete(f.stages, o)
		}
		return e, nil
	}
	f.stages[o] = stage
	if stage != targets.StageCopied {
		e.Owner, e.Epoch = to, e.Epoch+1
		f.entries[o] = e
	}
	if stage == targets.StageCleaned {
		delete(f.stages, o)
	}
	return e, nil
}

func (f *fakeTarget) Rules() []string {
	return []string{namePushDrop, nameTTLSynchronize, namePrimaryFreeze}
}

func (f *fakeTarget) SetRule(ctx context.Context, r targets.Rule) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.rules[r.ID]; ok {
		return errors.New("armed twice")
	}
	f.rules[r.ID] = &fakeRule{Rule: r, until: time.Now().Add(r.Lease), state: targets.RuleState{Armed: true}}
	return f.ruleErr
}

func (f *fakeTarget) RuleState(_ context.Context, id string) (targets.RuleState, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, ok := f.rules[id]
	if !ok {
		return targets.RuleState{}, f.ruleErr
	}
	s := r.state
	s.Armed = s.Armed && time.Now().Before(r.until)
	return s, f.ruleErr
}

func (f *fakeTarget) ClearRule(_ context.Context, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ruleErr != nil {
		return f.ruleErr
	}
	if r, ok := f.rules[id]; ok {
		r.state.Armed = false
	}
	return nil
}

// act lets every armed rule act once.
func (f *fakeTarget) act(*testing.T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.rules {
		if r.state.Armed {
			r.state.Hits, r.state.Seen = r.state.Hits+1, r.state.Seen+2
		}
	}
}

// state describes what faults change and reversals bring back.
func (f *fakeTarget) state(*testing.T) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var parts []string
	for _, n := range f.nodes {
		s := f.sleepers[n.ID]
		parts = append(parts, fmt.Sprintf("%s: pid %d, stopped %v", n.ID, s.PID, s.State() == 'T'))
	}
	for id, r := range f.rules {
		if r.state.Armed {
			parts = append(parts, "rule "+id)
		}
	}
	for o, stage := range f.stages {
		parts = append(parts, fmt.Sprintf("%s: %s", o, stage))
	}
	slices.Sort(parts)
	return strings.Join(parts, "\n")
}

func (f *fakeTarget) LinkAddr(link targets.Link) (string, error) {
	if f.link == nil {
		return "", fmt.Errorf("no link %q", link)
	}
	return f.link.addr, nil
}

func (f *fakeTarget) Reroute(_ context.Context, link targets.Link, addr string) error {
	if f.link == nil {
		return fmt.Errorf("no link %q", link)
	}
	return f.link.reroute(addr)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
