package targettest

import (
	"context"
	"errors"
	"fmt"

	"github.com/metachaos/metachaos/targets"
)

func generalChecks() []Check {
	return []Check{
		{Name: "topology is consistent", Try: tryTopology},
		{Name: "capabilities have their interfaces", Try: tryCapabilities},
		{Name: "an ended context ends an operation", Try: tryEndedContext},
		{Name: "a closed target answers and is never done", Try: tryClosed},
	}
}

func tryTopology(ctx context.Context, t targets.Target) error {
	top, err := t.Topology(ctx)
	if err != nil {
		return err
	}
	if len(top.Shards()) == 0 {
		return fmt.Errorf("no node has a shard: %+v", top.Nodes)
	}
	seen := map[targets.NodeID]bool{}
	index := map[string]int{}
	for _, n := range top.Nodes {
		if n.ID == "" || seen[n.ID] {
			return fmt.Errorf("node id %q is empty or comes twice", n.ID)
		}
		seen[n.ID] = true
		group := n.Shard + " " + string(n.Role)
		if index[group]++; n.Index != index[group] {
			return fmt.Errorf("node %s has index %d; it is number %d of its role in its shard", n.ID, n.Index, index[group])
		}
	}
	for _, shard := range top.Shards() {
		if n := len(top.Select(targets.Selector{Shard: shard, Role: targets.RolePrimary})); n == 0 {
			return fmt.Errorf("shard %s has no primary", shard)
		}
	}
	objects := map[targets.Object]bool{}
	for _, o := range top.Objects {
		back, err := targets.ParseObject(o.String())
		if err != nil || back != o || objects[o] {
			return fmt.Errorf("object %v comes twice or does not print as it is read", o)
		}
		objects[o] = true
	}
	if p, ok := t.(targets.Placer); ok {
		for i := range 100 {
			key := fmt.Sprintf("item-%d", i)
			if o := p.Place(key); !objects[o] || o != p.Place(key) {
				return fmt.Errorf("key %s is placed in %v, which is no object of the topology or changes", key, o)
			}
		}
	}
	return nil
}

func tryCapabilities(_ context.Context, t targets.Target) error {
	implemented := map[targets.Capability]bool{}
	_, implemented[targets.CapFetch] = t.(targets.Fetcher)
	_, implemented[targets.CapWatch] = t.(targets.Watcher)
	_, implemented[targets.CapTruth] = t.(targets.TruthLog)
	_, implemented[targets.CapProcesses] = t.(targets.Processes)
	_, implemented[targets.CapRestart] = t.(targets.Restarter)
	_, implemented[targets.CapMigrate] = t.(targets.Migrator)
	_, implemented[targets.CapRules] = t.(targets.Cooperator)
	_, implemented[targets.CapProxy] = t.(targets.Proxied)
	_, implemented[targets.CapSelfRouting] = t.(targets.SelfRouting)
	if t.Info().Kind == "" {
		return errors.New("the target has no kind")
	}
	for c, ok := range implemented {
		if t.Info().Has(c) && !ok {
			return fmt.Errorf("the target claims %q and lacks its interface", c)
		}
	}
	return nil
}

func tryEndedContext(ctx context.Context, t targets.Target) error {
	top, err := t.Topology(ctx)
	if err != nil {
		return err
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	primary := top.Select(targets.Selector{Role: targets.RolePrimary})[0]
	r := t.Do(ended, targets.Op{Verb: targets.VerbWrite, Node: primary.ID, Key: "item-0", Value: []byte("late")})
	if r.Outcome != targets.Refused && r.Outcome != targets.Unknown {
		return fmt.Errorf("a write whose context had ended gave outcome %q; want refused or unknown", r.Outcome)
	}
	return nil
}

func tryClosed(ctx context.Context, t targets.Target) error {
	top, err := t.Topology(ctx)
	if err != nil {
		return err
	}
	var processes []targets.Process
	if p, ok := t.(targets.Processes); ok {
		processes = p.Processes()
	}
	if err := t.Close(ctx); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	for _, p := range processes {
		if p.Alive() {
			return fmt.Errorf("process %d of node %s outlives the target", p.PID, p.Node)
		}
	}
	primary := top.Select(targets.Selector{Role: targets.RolePrimary})[0]
	r := t.Do(ctx, targets.Op{Verb: targets.VerbRead, Node: primary.ID, Key: "item-0"})
	if r.Outcome != targets.Refused && r.Outcome != targets.Unknown {
		return fmt.Errorf("a closed target gave outcome %q; want refused or unknown", r.Outcome)
	}
	if err := t.Close(ctx); err != nil {
		return fmt.Errorf("close again: %w", err)
	}
	return nil
}
