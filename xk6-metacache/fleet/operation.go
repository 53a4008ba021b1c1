package fleet

import (
	"context"
	"time"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/xk6-metacache/client"
)

// Result is what became of one operation.
type Result struct {
	Event targets.Event
	// Held is the epoch that the client held when it began; EpochLag is how
	// many versions that was behind the epoch which served it.
	Held      targets.Epoch
	EpochLag  uint64
	Owner     string
	Redirects int
	Loop      bool
	Refusals  []targets.Code // in order
	Documents []targets.Document
}

// Read reads one key as client i.
func (f *Fleet) Read(ctx context.Context, i int, key string) Result {
	return f.do(ctx, i, targets.Op{Verb: targets.VerbRead, Key: key, Concern: f.config.Concern})
}

// Write writes one key as client i.
func (f *Fleet) Write(ctx context.Context, i int, key string, value []byte) Result {
	return f.do(ctx, i, targets.Op{Verb: targets.VerbWrite, Key: key, Value: value})
}

func (f *Fleet) do(ctx context.Context, i int, op targets.Op) Result {
	ctx, cancel := context.WithTimeout(ctx, f.config.Timeout)
	defer cancel()
	m := f.members[i%len(f.members)]
	op.Client = m.name
	r := Result{Event: targets.Event{Start: f.base.Now(), Client: m.name, Verb: targets.EventVerb(op.Verb), Key: op.Key}}
	if m.session != nil {
		f.observe(ctx, m, op, &r)
	} else {
		f.route(ctx, m, op, &r)
	}
	r.Event.End = f.base.Now()
	f.sink.Event(r.Event)
	return r
}

// observe performs an operation through the target's own client library.
func (f *Fleet) observe(ctx context.Context, m *member, op targets.Op, r *Result) {
	m.mu.Lock()
	reply := m.session.Do(ctx, op)
	m.mu.Unlock()
	r.finish(reply, client.Step{Outcome: reply.Outcome, Code: reply.Code})
	r.Event.HopCount = reply.Hops
}

// route performs an operation with the client's own cache: look up, ask, and
// do what the kernel makes of the answer, until it says that it is over.
func (f *Fleet) route(ctx context.Context, m *member, op targets.Op, r *Result) {
	op.Object = f.placer.Place(op.Key)
	r.Event.Object = op.Object
	entry, cache, err := f.lookup(ctx, m, op.Object)
	r.Event.Cache = cache
	r.Held = entry.Epoch
	if err != nil {
		r.end(ctx, targets.Refused, targets.CodeControlDown)
		return
	}
	attempt := f.config.Policy.Begin(op.Verb)
	defer func() {
		r.Event.HopCount, r.Redirects, r.Loop = attempt.Requests, attempt.Redirects, attempt.Loop
		if len(r.Event.Hops) == 1 {
			r.Event.Hops = nil // the event's own fields say it all
		}
	}()
	for {
		op.Node, op.Epoch = f.nodeOf(m, entry.Owner, op.Verb), f.sent(entry)
		attempt.Asking(op.Node, entry.Owner, op.Epoch)
		reply := f.target.Do(ctx, op)
		r.hop(op.Node, op.Epoch, reply)
		m.mu.Lock()
		step := attempt.After(reply, entry, m.rng)
		m.mu.Unlock()
		switch step.Action {
		case client.Finish:
			r.finish(reply, step)
			return
		case client.Redirect:
			entry = step.To
		case client.Refresh:
			fresh, err := f.pull(ctx, m, op.Object, targets.CauseMismatch)
			switch {
			case err == nil:
				entry = fresh
			case reply.Owner != "": // the control plane is gone: trust the refusal
				entry = targets.Entry{Object: op.Object, Epoch: reply.Epoch, Owner: reply.Owner}
			}
		}
		if !sleep(ctx, step.Wait) {
			r.end(ctx, reply.Outcome, reply.Code)
			return
		}
		if step.Action == client.Retry {
			entry = f.held(m, entry) // a push may have brought news while waiting
		}
	}
}

// lookup returns the client's entry and pulls it when there is none to use.
func (f *Fleet) lookup(ctx context.Context, m *member, o targets.Object) (targets.Entry, targets.CacheResult, error) {
	m.mu.Lock()
	entry, cache := m.cache.Lookup(f.base.Now(), o)
	m.mu.Unlock()
	cause := targets.CauseCold
	switch cache {
	case targets.CacheHit:
		return entry, cache, nil
	case targets.CacheExpired:
		cause = targets.CauseTTL
	}
	fresh, err := f.pull(ctx, m, o, cause)
	if err != nil && entry.Owner != "" {
		return entry, cache, nil // last-known-good: the nodes check the epoch
	}
	return fresh, cache, err
}

func (f *Fleet) held(m *member, entry targets.Entry) targets.Entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, cache := m.cache.Lookup(0, entry.Object); cache != targets.CacheMiss && e.Epoch > entry.Epoch {
		return e
	}
	return entry
}

func (f *Fleet) sent(e targets.Entry) targets.Epoch {
	if !f.config.Policy.Epochs {
		return 0
	}
	return e.Epoch
}

// nodeOf picks the node of a shard that an operation goes to: its primary
// for writes, and for reads what the preference says.
func (f *Fleet) nodeOf(m *member, shard string, verb targets.Verb) targets.NodeID {
	role := targets.RolePrimary
	if verb != targets.VerbWrite && f.config.Preference == targets.PreferSecondary {
		role = targets.RoleSecondary
	}
	nodes := f.topology.Select(targets.Selector{Shard: shard, Role: role})
	if len(nodes) == 0 { // a shard without secondaries
		nodes = f.topology.Select(targets.Selector{Shard: shard})
	}
	if len(nodes) == 0 {
		return targets.NodeID(shard)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return nodes[m.rng.IntN(len(nodes))].ID
}

func (r *Result) hop(node targets.NodeID, sent targets.Epoch, reply targets.Reply) {
	r.Event.Hops = append(r.Event.Hops, targets.Hop{Node: node, Epoch: sent, Served: reply.Epoch, Code: reply.Code, Owner: reply.Owner})
	r.Event.Node, r.Event.Sent = node, sent
	if reply.Outcome == targets.Refused {
		r.Refusals = append(r.Refusals, reply.Code)
	}
}

func (r *Result) finish(reply targets.Reply, step client.Step) {
	e := &r.Event
	e.Outcome, e.Code, e.Served, e.Shard = step.Outcome, step.Code, reply.Epoch, reply.Shard
	if reply.Node != "" {
		e.Node = reply.Node
	}
	e.Documents = len(reply.Documents)
	if len(reply.Documents) == 1 {
		e.Version = reply.Documents[0].Version
	}
	r.Owner, r.Documents = reply.Owner, reply.Documents
	if reply.Epoch > r.Held {
		r.EpochLag = uint64(reply.Epoch - r.Held)
	}
}

// end closes an operation that ran out of time between two requests: nothing
// of it is under way, so it has not happened.
func (r *Result) end(ctx context.Context, outcome targets.Outcome, code targets.Code) {
	r.Event.Outcome, r.Event.Code = outcome, code
	if ctx.Err() != nil {
		r.Event.Code = targets.CodeTimeout
	}
}

// sleep waits and reports whether ctx is still good.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
