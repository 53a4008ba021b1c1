package targettest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/metachaos/metachaos/targets"
)

// retry is the pause between two attempts at what is not so yet.
const retry = 5 * time.Millisecond

// eventually tries until try gives no error, or ctx ends.
func eventually(ctx context.Context, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; last: %w", ctx.Err(), err)
		case <-time.After(retry):
		}
	}
}

// router routes operations as a cache client without a cache would: it asks
// the control plane each time. A self-routing target needs none of that.
type router struct {
	target   targets.Target
	session  targets.Session // of a self-routing target
	fetcher  targets.Fetcher
	placer   targets.Placer
	topology targets.Topology
}

func newRouter(ctx context.Context, t targets.Target) (*router, error) {
	r := &router{target: t}
	var err error
	if r.topology, err = t.Topology(ctx); err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	if s, ok := t.(targets.SelfRouting); ok && t.Info().Has(targets.CapSelfRouting) {
		r.session, err = s.Open(ctx, "router")
		return r, err
	}
	var ok bool
	if r.fetcher, ok = t.(targets.Fetcher); !ok {
		return nil, fmt.Errorf("target %s neither routes by itself nor lets its map be fetched", t.Info().Kind)
	}
	if r.placer, ok = t.(targets.Placer); !ok {
		return nil, fmt.Errorf("target %s neither routes by itself nor says which object a key belongs to", t.Info().Kind)
	}
	return r, nil
}

func (r *router) close() error {
	if r.session != nil {
		return r.session.Close()
	}
	return nil
}

// entry returns the truth about the object of a key.
func (r *router) entry(ctx context.Context, key string) (targets.Entry, error) {
	o := r.placer.Place(key)
	entries, err := r.fetcher.Fetch(ctx, targets.Fetch{Objects: []targets.Object{o}, Cause: targets.CauseCold, Client: "router"})
	if err != nil {
		return targets.Entry{}, err
	}
	if len(entries) != 1 || entries[0].Object != o {
		return targets.Entry{}, fmt.Errorf("fetching %s gave %v", o, entries)
	}
	return entries[0], nil
}

// at returns the first node of a shard in a role.
func (r *router) at(shard string, role targets.Role) (targets.NodeID, error) {
	nodes := r.topology.Select(targets.Selector{Shard: shard, Role: role})
	if len(nodes) == 0 {
		return "", fmt.Errorf("shard %q has no %s", shard, role)
	}
	return nodes[0].ID, nil
}

// op routes an operation on a key to a node of its owner.
func (r *router) op(ctx context.Context, verb targets.Verb, key string, value []byte, role targets.Role) (targets.Op, error) {
	e, err := r.entry(ctx, key)
	if err != nil {
		return targets.Op{}, err
	}
	id, err := r.at(e.Owner, role)
	return targets.Op{Verb: verb, Node: id, Object: e.Object, Key: key, Value: value, Epoch: e.Epoch, Client: "router"}, err
}

// do performs an operation and retries what is refused until ctx ends.
func (r *router) do(ctx context.Context, verb targets.Verb, key string, value []byte, role targets.Role) (targets.Reply, error) {
	var reply targets.Reply
	err := eventually(ctx, func() error {
		op := targets.Op{Verb: verb, Key: key, Value: value, Client: "router"}
		if r.session != nil {
			reply = r.session.Do(ctx, op)
		} else {
			routed, err := r.op(ctx, verb, key, value, role)
			if err != nil {
				return err
			}
			reply = r.target.Do(ctx, routed)
		}
		return wantOutcome(reply, targets.Done)
	})
	if err != nil {
		return reply, fmt.Errorf("%s %s: %w", verb, key, err)
	}
	return reply, nil
}

// scan reads all shards at one role and counts each id.
func (r *router) scan(ctx context.Context, role targets.Role, concern targets.Concern) (map[string]int, error) {
	counts := map[string]int{}
	if r.session != nil {
		reply := r.session.Do(ctx, targets.Op{Verb: targets.VerbScan, Concern: concern})
		count(counts, reply)
		return counts, wantOutcome(reply, targets.Done)
	}
	err := eventually(ctx, func() error {
		clear(counts)
		epochs, err := r.epochs(ctx)
		if err != nil {
			return err
		}
		for _, shard := range r.topology.Shards() {
			id, err := r.at(shard, role)
			if err != nil {
				return err
			}
			reply := r.target.Do(ctx, targets.Op{Verb: targets.VerbScan, Node: id, Epochs: maps.Clone(epochs), Concern: concern, Client: "router"})
			if err := wantOutcome(reply, targets.Done); err != nil {
				return err
			}
			count(counts, reply)
		}
		return nil
	})
	return counts, err
}

func count(into map[string]int, r targets.Reply) {
	for _, d := range r.Documents {
		into[d.ID]++
	}
}

func (r *router) epochs(ctx context.Context) (map[targets.Object]targets.Epoch, error) {
	entries, err := r.fetcher.Fetch(ctx, targets.Fetch{Cause: targets.CauseCold, Client: "router"})
	out := make(map[targets.Object]targets.Epoch, len(entries))
	for _, e := range entries {
		out[e.Object] = e.Epoch
	}
	return out, err
}

// foreign returns a shard that does not own the entry.
func (r *router) foreign(e targets.Entry) (string, error) {
	shards := r.topology.Shards()
	i := slices.IndexFunc(shards, func(s string) bool { return s != e.Owner })
	if i < 0 {
		return "", fmt.Errorf("shards are %v; the check needs two", shards)
	}
	return shards[i], nil
}

func wantOutcome(r targets.Reply, want targets.Outcome) error {
	if r.Outcome != want {
		return fmt.Errorf("outcome %q (code %s, %s) of node %s; want %q", r.Outcome, r.Code, r.Detail, r.Node, want)
	}
	return nil
}

func wantRefusal(r targets.Reply, want targets.Code) error {
	if r.Outcome != targets.Refused || r.Code != want {
		return fmt.Errorf("outcome %q with code %q (%s); want refused with %s", r.Outcome, r.Code, r.Detail, want)
	}
	return nil
}

// wantOnce checks a scatter read: every loaded document once.
func wantOnce(counts map[string]int, loaded int) error {
	for i := range loaded {
		if id := fmt.Sprintf("item-%d", i); counts[id] != 1 {
			return fmt.Errorf("document %s came %d times; want once", id, counts[id])
		}
	}
	return nil
}
