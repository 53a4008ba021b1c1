package fleet

import (
	"context"
	"sync"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/xk6-metacache/client"
)

// scatter performs a scan with the client's own cache: all shards are asked
// under the same epochs.
func (f *Fleet) scatter(ctx context.Context, m *member, op targets.Op, r *Result) {
	var known bool
	if op.Epochs, known = f.scanEpochs(ctx, m); !known {
		r.end(ctx, targets.Refused, targets.CodeControlDown)
		return
	}
	attempt := f.config.Policy.Begin(targets.VerbScan)
	for {
		attempt.Requests++
		worst := r.gather(f.ask(ctx, m, op))
		m.mu.Lock()
		step := attempt.After(worst, targets.Entry{}, m.rng)
		m.mu.Unlock()
		if step.Action == client.Finish {
			r.Event.Outcome, r.Event.Code = step.Outcome, step.Code
			return
		}
		if !sleep(ctx, step.Wait) {
			r.end(ctx, worst.Outcome, worst.Code)
			return
		}
		if step.Action == client.Refresh {
			_ = f.pullAll(ctx, m, targets.CauseMismatch) // the next answers show whether it helped
		}
		m.mu.Lock()
		op.Epochs, _ = m.cache.Epochs(f.base.Now(), f.topology.Objects)
		m.mu.Unlock()
	}
}

// scanEpochs returns the client's epochs of all objects. A cold, partial or
// expired cache is filled first. Without the control plane the last known ones
// are good enough, but not to know some at all: the nodes would not check
// those.
func (f *Fleet) scanEpochs(ctx context.Context, m *member) (epochs map[targets.Object]targets.Epoch, known bool) {
	held := func() (map[targets.Object]targets.Epoch, targets.CacheResult) {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.cache.Epochs(f.base.Now(), f.topology.Objects)
	}
	epochs, result := held()
	cause := targets.CauseCold
	switch result {
	case targets.CacheNone, targets.CacheHit:
		return epochs, true
	case targets.CacheExpired:
		cause = targets.CauseTTL
	}
	err := f.pullAll(ctx, m, cause)
	epochs, _ = held()
	return epochs, err == nil || result == targets.CacheExpired
}

// ask scans one node of every shard.
func (f *Fleet) ask(ctx context.Context, m *member, op targets.Op) []targets.Reply {
	replies := make([]targets.Reply, len(f.shards))
	var all sync.WaitGroup
	for i, shard := range f.shards {
		one := op
		one.Node = f.roster.node(m, shard, targets.VerbScan)
		all.Go(func() { replies[i] = f.target.Do(ctx, one) })
	}
	all.Wait()
	return replies
}

// gather notes the answers of all shards, and returns the one that decides
// what follows: done only if all are.
func (r *Result) gather(replies []targets.Reply) targets.Reply {
	worst := targets.Reply{Outcome: targets.Done}
	r.Event.HopCount += len(replies)
	for _, reply := range replies {
		if reply.Outcome == targets.Refused {
			r.Refusals = append(r.Refusals, reply.Code)
		}
		hint := max(worst.RetryAfter, reply.RetryAfter)
		if gravity(reply) > gravity(worst) {
			worst = reply
		}
		worst.RetryAfter = hint
	}
	r.Event.Node, r.Event.Shard = worst.Node, worst.Shard // none if all is well
	if worst.Outcome == targets.Done {
		for _, reply := range replies {
			r.Documents = append(r.Documents, reply.Documents...)
		}
	}
	return worst
}

// gravity orders replies by what they ask of a scan: nothing, to wait, to
// pull, or to give up.
func gravity(r targets.Reply) int {
	switch {
	case r.Outcome == targets.Done:
		return 0
	case r.Outcome == targets.Unknown:
		return 3
	case r.Code == targets.CodeStaleEpoch, r.Code == targets.CodeNotOwner:
		return 2
	}
	return 1
}
