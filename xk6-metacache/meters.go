package metacache

import (
	"time"

	"github.com/metachaos/metachaos/load/script"
	"github.com/metachaos/metachaos/results"
	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/xk6-metacache/fleet"
)

// meters are the metrics of the module, as one VU records them. Durations are
// in milliseconds.
type meters struct {
	tagger tagger

	ops, refusals, redirects, loops, duplicates, missing *results.Metric // counters
	opDuration, epochLag, hops                           *results.Metric // trends
	cacheHits                                            *results.Metric // rate
}

func newMeters(h script.Host) (*meters, error) {
	out := &meters{tagger: newTagger(h)}
	for _, d := range []struct {
		to       **results.Metric
		name     string
		kind     results.MetricKind
		contains results.Contains
	}{
		{&out.ops, "metacache_ops", results.Counter, results.ContainsDefault},
		{&out.refusals, "metacache_refusals", results.Counter, results.ContainsDefault},
		{&out.redirects, "metacache_redirects", results.Counter, results.ContainsDefault},
		{&out.loops, "metacache_redirect_loops", results.Counter, results.ContainsDefault},
		{&out.duplicates, "metacache_duplicates", results.Counter, results.ContainsDefault},
		{&out.missing, "metacache_missing", results.Counter, results.ContainsDefault},
		{&out.opDuration, "metacache_op_duration", results.Trend, results.ContainsTime},
		{&out.epochLag, "metacache_epoch_lag", results.Trend, results.ContainsDefault},
		{&out.hops, "metacache_hops", results.Trend, results.ContainsDefault},
		{&out.cacheHits, "metacache_cache_hits", results.Rate, results.ContainsDefault},
	} {
		metric, err := h.Meter().Metric(d.name, d.kind, d.contains)
		if err != nil {
			return nil, err
		}
		*d.to = metric
	}
	return out, nil
}

// record adds the samples of one operation.
func (m *meters) record(r *fleet.Result) {
	e := &r.Event
	all := m.tagger.of(labels{op: string(e.Verb), outcome: string(e.Outcome), kind: string(e.Object.Kind),
		node: string(e.Node), shard: e.Shard, cause: string(e.Code)})
	m.tagger.record(m.ops, 1, all)
	m.tagger.record(m.opDuration, milliseconds(e), all)
	m.tagger.record(m.hops, float64(e.HopCount), all)
	op := m.tagger.of(labels{op: string(e.Verb)})
	if e.Cache != targets.CacheNone {
		hit := 0.0
		if e.Cache == targets.CacheHit {
			hit = 1
		}
		m.tagger.record(m.cacheHits, hit, op)
	}
	if e.Outcome == targets.Done && e.Verb != targets.EventScan {
		m.tagger.record(m.epochLag, float64(r.EpochLag), op)
	}
	for _, code := range r.Refusals {
		m.tagger.record(m.refusals, 1, m.tagger.of(labels{op: string(e.Verb), cause: string(code)}))
	}
	m.count(m.redirects, r.Redirects, op)
	if r.Loop {
		m.count(m.loops, 1, op)
	}
	if e.Verb == targets.EventScan {
		m.count(m.duplicates, e.Duplicates, op)
		m.count(m.missing, e.Missing, op)
	}
}

// count adds to a counter; a zero is no sample.
func (m *meters) count(metric *results.Metric, n int, t tags) {
	if n > 0 {
		m.tagger.record(metric, float64(n), t)
	}
}

func milliseconds(e *targets.Event) float64 {
	return float64(e.End-e.Start) / float64(time.Millisecond)
}
