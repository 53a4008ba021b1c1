package fleet

import (
	"context"
	"time"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/xk6-metacache/client"
)

// Read reads one key as client i.
func (f *Fleet) Read(ctx context.Context, i int, key string) Result {
	return f.do(ctx, i, targets.Op{Verb: targets.VerbRead, Key: key, Concern: f.config.Concern})
}

// Write writes one key as client i.
func (f *Fleet) Write(ctx context.Context, i int, key string, value []byte) Result {
	return f.do(ctx, i, targets.Op{Verb: targets.VerbWrite, Key: key, Value: value})
}

// Scan reads every document from all shards at once, as client i. All shards
// are asked under the same epochs: when one refuses them, the client pulls
// and the whole scatter read begins anew, since answers under different
// epochs can hold a document twice or not at all.
func (f *Fleet) Scan(ctx context.Context, i int) Result {
	return f.do(ctx, i, targets.Op{Verb: targets.VerbScan, Concern: f.config.Concern})
}

func (f *Fleet) do(ctx context.Context, i int, op targets.Op) (r Result) {
	ctx, cancel := context.WithTimeout(ctx, f.config.Timeout)
	defer cancel()
	m := f.members[i%len(f.members)]
	op.Client = m.name
	r.Event = targets.Event{Start: f.base.Now(), Client: m.name, Verb: targets.EventVerb(op.Verb), Key: op.Key}
	if f.placer != nil && op.Verb != targets.VerbScan {
		op.Object = f.placer.Place(op.Key)
		r.Event.Object = op.Object
	}
	switch {
	case m.session != nil:
		f.observe(ctx, m, op, &r)
	case op.Verb == targets.VerbScan:
		f.scatter(ctx, m, op, &r)
	default:
		f.route(ctx, m, op, &r)
	}
	if op.Verb == targets.VerbScan && r.Event.Outcome == targets.Done {
		r.count(f.topology.Documents)
	}
	r.Event.End = f.base.Now()
	f.sink.Event(r.Event)
	return r
}

// route performs an operation with the client's own cache: look up, ask, and
// do what the kernel makes of the answer, until it says that it is over.
func (f *Fleet) route(ctx context.Context, m *member, op targets.Op, r *Result) {
	entry, cache, err := f.lookup(ctx, m, op.Object)
	r.Event.Cache, r.Held = cache, entry.Epoch
	if err != nil {
		r.end(ctx, targets.Refused, targets.CodeControlDown)
		return
	}
	attempt := f.config.Policy.Begin(op.Verb)
	for {
		op.Node, op.Epoch = f.roster.node(m, entry.Owner, op.Verb), f.sent(entry)
		attempt.Asking(op.Node, entry.Owner, entry.Epoch)
		reply := f.target.Do(ctx, op)
		r.hop(entry.Owner, op, reply)
		r.Redirects, r.Loop = attempt.Redirects, attempt.Loop
		m.mu.Lock()
		step := attempt.After(reply, entry, m.rng)
		m.mu.Unlock()
		if step.Action == client.Finish {
			r.finish(reply, step)
			return
		}
		if !sleep(ctx, step.Wait) {
			r.end(ctx, reply.Outcome, reply.Code)
			return
		}
		switch step.Action {
		case client.Redirect:
			entry = step.To
		case client.Refresh:
			entry = f.refresh(ctx, m, entry, reply)
		case client.Retry:
			entry = f.held(m, entry) // a push may have brought news while waiting
		}
		if ctx.Err() != nil {
			r.end(ctx, reply.Outcome, reply.Code)
			return
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

// refresh pulls an entry that a node refused. When the control plane is gone,
// it trusts the refusal, if that names an owner.
func (f *Fleet) refresh(ctx context.Context, m *member, entry targets.Entry, refusal targets.Reply) targets.Entry {
	fresh, err := f.pull(ctx, m, entry.Object, targets.CauseMismatch)
	switch {
	case err == nil:
		return fresh
	case refusal.Owner != "":
		return targets.Entry{Object: entry.Object, Epoch: refusal.Epoch, Owner: refusal.Owner}
	}
	return entry
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
