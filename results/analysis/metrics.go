package analysis

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/metachaos/metachaos/results"
	"github.com/metachaos/metachaos/results/stats"
)

// Threshold is one demand on a metric, as it was written.
type Threshold struct {
	Source string // the expression
	// AbortOnFail ends the run when the expression does not hold, but not
	// before DelayAbort has passed since the start.
	AbortOnFail bool
	DelayAbort  time.Duration
}

// Names of the built-in metrics that are more than a row in the summary.
const (
	checksMetric        = "checks"
	groupDurationMetric = "group_duration"
	// impliedSubMetric always stands in the summary when it has samples.
	impliedSubMetric = "http_req_duration{expected_response:true}"
)

// Metrics aggregates the samples of a run as they come: a sink for each
// metric, for each sub-metric that a threshold names, and for each check. Its
// memory does not grow with the number of samples. It is safe for concurrent
// use.
type Metrics struct {
	registry *results.Registry

	mu     sync.Mutex
	series map[*results.Metric]*series
	checks *checkTree
}

var _ results.Recorder = (*Metrics)(nil)

// series is a metric or sub-metric with its thresholds.
type series struct {
	name       string
	metric     *results.Metric
	sink       stats.Sink
	thresholds []parsedThreshold
	tags       map[string]string // of a sub-metric
	subs       []*series
	// matching remembers which subs a tag set belongs to.
	matching map[*results.Tags][]*series
}

type parsedThreshold struct {
	Threshold
	expression Expression
}

// maxRemembered bounds what is remembered by tag set, for scripts whose tags
// never repeat; beyond it, memory is forgotten and built anew.
const maxRemembered = 10_000

// NewMetrics returns an empty aggregate. Thresholds are keyed by metric
// selectors; one that cannot be parsed, names no metric of the registry, or
// asks for a statistic that its metric lacks is a [ConfigError].
func NewMetrics(registry *results.Registry, thresholds map[string][]Threshold) (*Metrics, error) {
	m := &Metrics{registry: registry, series: map[*results.Metric]*series{}, checks: newCheckTree()}
	for _, key := range slices.Sorted(maps.Keys(thresholds)) {
		s, err := m.selected(key)
		if err != nil {
			return nil, err
		}
		for _, t := range thresholds[key] {
			e, err := ParseExpression(t.Source)
			if err != nil {
				return nil, configErrorf("thresholds of %q: %w", key, err)
			}
			if err := e.fits(s.metric); err != nil {
				return nil, configErrorf("thresholds of %q: threshold %q: %w", key, t.Source, err)
			}
			s.thresholds = append(s.thresholds, parsedThreshold{t, e})
		}
	}
	if registry.Lookup("http_req_duration") != nil {
		if _, err := m.selected(impliedSubMetric); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// selected returns the series that a selector names and makes it when it is
// new.
func (m *Metrics) selected(key string) (*series, error) {
	sel, err := ParseSelector(key)
	if err != nil {
		return nil, err
	}
	metric := m.registry.Lookup(sel.Metric)
	if metric == nil {
		return nil, configErrorf("thresholds of %q: there is no metric %q; make it in init code, or mend its name", key, sel.Metric)
	}
	parent := m.of(metric)
	if sel.Tags == nil {
		return parent, nil
	}
	for _, sub := range parent.subs {
		if maps.Equal(sub.tags, sel.Tags) {
			return sub, nil
		}
	}
	sub := &series{name: key, metric: metric, sink: stats.NewSink(string(metric.Kind)), tags: sel.Tags}
	parent.subs = append(parent.subs, sub)
	parent.matching = map[*results.Tags][]*series{}
	return sub, nil
}

func (m *Metrics) of(metric *results.Metric) *series {
	s := m.series[metric]
	if s == nil {
		s = &series{name: metric.Name, metric: metric, sink: stats.NewSink(string(metric.Kind))}
		m.series[metric] = s
	}
	return s
}

// Record adds samples.
func (m *Metrics) Record(samples ...results.Sample) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range samples {
		m.add(&samples[i])
	}
}

func (m *Metrics) add(sample *results.Sample) {
	s := m.of(sample.Metric)
	s.sink.Add(sample.At, sample.Value)
	if s.subs != nil {
		for _, sub := range s.matches(sample.Tags) {
			sub.sink.Add(sample.At, sample.Value)
		}
	}
	switch sample.Metric.Name {
	case checksMetric:
		m.checks.count(sample.Tags, sample.Value != 0)
	case groupDurationMetric:
		m.checks.group(sample.Tags)
	}
}

func (s *series) matches(tags *results.Tags) []*series {
	found, known := s.matching[tags]
	if known {
		return found
	}
	for _, sub := range s.subs {
		if tags.Matches(sub.tags) {
			found = append(found, sub)
		}
	}
	if len(s.matching) >= maxRemembered {
		clear(s.matching)
	}
	s.matching[tags] = found
	return found
}

// Crossed evaluates all thresholds over the run so far and returns the first
// crossed one, as "metric: expression", that asks to abort the run, or the
// empty string. Series without samples are passed over.
func (m *Metrics) Crossed(elapsed time.Duration) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.ordered() {
		if s.sink.Empty() {
			continue
		}
		for _, t := range s.thresholds {
			if !t.AbortOnFail || elapsed < t.DelayAbort {
				continue
			}
			if _, ok := t.expression.evaluate(s.sink, elapsed); !ok {
				return s.name + ": " + t.Source
			}
		}
	}
	return ""
}

// ordered returns all series, each followed by its sub-metrics, in the order
// in which their metrics were made.
func (m *Metrics) ordered() []*series {
	var all []*series
	for _, metric := range m.registry.Metrics() {
		if s := m.series[metric]; s != nil {
			all = append(append(all, s), s.subs...)
		}
	}
	return all
}
