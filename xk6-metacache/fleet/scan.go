package fleet

import (
	"context"
	"maps"
	"strconv"
	"strings"
	"sync"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/xk6-metacache/client"
)

// Scan reads every document from all shards at once, as client i. All shards
// are asked under the same epochs: when one refuses them, the client pulls
// and the whole scatter read begins anew, since answers under different
// epochs can hold a document twice or not at all.
func (f *Fleet) Scan(ctx context.Context, i int) Result {
	ctx, cancel := context.WithTimeout(ctx, f.config.Timeout)
	defer cancel()
	m := f.members[i%len(f.members)]
	r := Result{Event: targets.Event{Start: f.base.Now(), Client: m.name, Verb: targets.EventScan}}
	if m.session != nil {
		f.observe(ctx, m, targets.Op{Verb: targets.VerbScan, Concern: f.config.Concern, Client: m.name}, &r)
		r.count(f.topology.Documents)
	} else {
		f.scatter(ctx, m, &r)
	}
	r.Event.End = f.base.Now()
	f.sink.Event(r.Event)
	return r
}

func (f *Fleet) scatter(ctx context.Context, m *member, r *Result) {
	attempt := f.config.Policy.Begin(targets.VerbScan)
	for {
		attempt.Requests++
		replies := f.ask(ctx, m, f.scanEpochs(ctx, m))
		worst := targets.Reply{Outcome: targets.Done}
		r.Documents = r.Documents[:0]
		for _, reply := range replies {
			r.Event.HopCount++
			if reply.Outcome != targets.Done {
				worst = reply
				r.Refusals = append(r.Refusals, reply.Code)
			}
			r.Documents = append(r.Documents, reply.Documents...)
		}
		m.mu.Lock()
		step := attempt.After(worst, targets.Entry{}, m.rng)
		m.mu.Unlock()
		if step.Action == client.Finish {
			r.Event.Outcome, r.Event.Code = step.Outcome, step.Code
			if step.Outcome == targets.Done {
				r.count(f.topology.Documents)
			}
			return
		}
		if step.Action == client.Refresh {
			_ = f.pullAll(ctx, m, targets.CauseMismatch) // the retry shows whether it helped
		}
		if !sleep(ctx, step.Wait) {
			r.end(ctx, worst.Outcome, worst.Code)
			return
		}
	}
}

// scanEpochs returns the client's epochs of all objects. A cold or partial
// cache is filled first.
func (f *Fleet) scanEpochs(ctx context.Context, m *member) map[targets.Object]targets.Epoch {
	held := func() map[targets.Object]targets.Epoch {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.cache.Epochs()
	}
	epochs := held()
	if epochs != nil && len(epochs) < len(f.topology.Objects) {
		_ = f.pullAll(ctx, m, targets.CauseCold) // nodes refuse what is still missing
		epochs = held()
	}
	return epochs
}

// ask scans one node of every shard.
func (f *Fleet) ask(ctx context.Context, m *member, epochs map[targets.Object]targets.Epoch) []targets.Reply {
	replies := make([]targets.Reply, len(f.shards))
	var all sync.WaitGroup
	for i, shard := range f.shards {
		node := f.nodeOf(m, shard, targets.VerbScan)
		all.Go(func() {
			replies[i] = f.target.Do(ctx, targets.Op{Verb: targets.VerbScan, Node: node, Concern: f.config.Concern,
				Epochs: maps.Clone(epochs), Client: m.name})
		})
	}
	all.Wait()
	return replies
}

// count finds the ids that came twice and the loaded ones that did not come.
func (r *Result) count(loaded int) {
	seen := make(map[string]struct{}, len(r.Documents))
	e := &r.Event
	e.Documents = len(r.Documents)
	e.Missing = loaded
	for _, d := range r.Documents {
		if _, twice := seen[d.ID]; twice {
			e.Duplicates++
			continue
		}
		seen[d.ID] = struct{}{}
		if isLoaded(d.ID, loaded) {
			e.Missing--
		}
	}
}

// isLoaded reports whether id is one of item-0 … item-(n-1).
func isLoaded(id string, n int) bool {
	text, ok := strings.CutPrefix(id, "item-")
	if !ok {
		return false
	}
	i, err := strconv.Atoi(text)
	return err == nil && i >= 0 && i < n && strconv.Itoa(i) == text
}
