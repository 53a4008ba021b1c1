package analysis

import (
	"github.com/metachaos/metachaos/results"
	"github.com/metachaos/metachaos/targets"
)

// cacheTally looks at what clients found in their caches, and at the pulls
// that followed.
//
//	cache.hit_rate = hits / reads and writes in which a cache took part
//	pulls.total    = pulls begun, by cause
//
// A pull that waited for another client's fetch is no pull of its own.
type cacheTally struct {
	lookups, hits uint64
	misses        Evidence
	pulls         Evidence
	byCause       map[targets.Cause]*Evidence
}

func newCacheTally() *cacheTally { return &cacheTally{byCause: map[targets.Cause]*Evidence{}} }

func (t *cacheTally) event(line int, e *targets.Event) {
	switch e.Verb {
	case targets.EventRead, targets.EventWrite:
		if e.Cache == targets.CacheNone {
			return
		}
		t.lookups++
		if e.Cache == targets.CacheHit {
			t.hits++
		} else {
			t.misses.add(results.EventsFile, line, e.Start, e.End)
		}
	case targets.EventPull:
		if e.Shared {
			return
		}
		t.pulls.add(results.EventsFile, line, e.Start, e.End)
		c := t.byCause[e.Cause]
		if c == nil {
			c = &Evidence{}
			t.byCause[e.Cause] = c
		}
		c.add(results.EventsFile, line, e.Start, e.End)
	}
}

func (t *cacheTally) report(out figures, s *scene) {
	out["cache.hit_rate"] = share(t.hits, t.lookups, "lookups").with(t.misses)
	out["pulls.total"] = count(t.pulls.Count).with(t.pulls)
	if !s.sawPulls {
		out["pulls.total"] = unknown("the run records no pulls")
	}
	for cause, e := range t.byCause {
		out[labelled("pulls.total", byCause, string(cause))] = count(e.Count).with(*e)
	}
}

// pushTally counts the control plane's pushes, as the truth has them.
//
//	push.sent = pushes, including those that were dropped
//	push.lost = pushes that a rule dropped
type pushTally struct {
	sent, lost Evidence
}

func (t *pushTally) truth(line int, r *targets.Truth) {
	if r.Kind != targets.TruthPush {
		return
	}
	t.sent.add(results.TruthFile, line, r.At, r.At)
	if r.Lost {
		t.lost.add(results.TruthFile, line, r.At, r.At)
	}
}

func (t *pushTally) report(out figures, s *scene) {
	if !s.sawTruth {
		out["push.sent"] = unknown("the run records no truth")
		out["push.lost"] = unknown("the run records no truth")
		return
	}
	out["push.sent"] = count(t.sent.Count).with(t.sent)
	out["push.lost"] = count(t.lost.Count).with(t.lost)
}
