package script

import (
	"maps"
	"time"

	"github.com/metachaos/metachaos/results"
)

// Clock tells the offset from the base instant of the run.
type Clock interface {
	Now() time.Duration
}

// meter collects the samples of one VU and hands them on in batches.
type meter struct {
	registry  *results.Registry
	recorder  results.Recorder // nil outside of a run
	clock     Clock
	tags      *results.Tags // of samples that are taken now
	groupPath string        // of the group that runs
	batch     []results.Sample
	derived   map[tagKey]*results.Tags
}

// tagKey is a tag set with one more tag.
type tagKey struct {
	base       *results.Tags
	key, value string
}

const (
	batchSize  = 64
	maxDerived = 512 // beyond, the names do not repeat and remembering is of no use
)

func newMeter(p *Program, x *Execution) meter {
	m := meter{registry: p.registry, tags: p.runTags}
	if x != nil {
		m.recorder, m.clock = x.cfg.Recorder, x.cfg.Clock
	}
	return m
}

// with returns the current tags and one more.
func (m *meter) with(key, value string) *results.Tags {
	k := tagKey{m.tags, key, value}
	if t := m.derived[k]; t != nil {
		return t
	}
	if m.derived == nil || len(m.derived) >= maxDerived {
		m.derived = make(map[tagKey]*results.Tags)
	}
	t := m.tags.With(key, value)
	m.derived[k] = t
	return t
}

// sample records one value under the given tags.
func (m *meter) sample(metric *results.Metric, value float64, tags *results.Tags) {
	if m.recorder == nil {
		return
	}
	m.batch = append(m.batch, results.Sample{At: m.clock.Now(), Metric: metric, Tags: tags, Value: value})
	if len(m.batch) >= batchSize {
		m.flush()
	}
}

func (m *meter) flush() {
	if len(m.batch) > 0 {
		m.recorder.Record(m.batch...)
		m.batch = m.batch[:0]
	}
}

// Record adds one sample now; see [Meter].
func (v *vm) Record(metric *results.Metric, value float64, tags map[string]string) {
	if v.inInit {
		v.throw("metric %s: samples cannot be added in init code", metric.Name)
	}
	set := v.tags
	switch len(tags) {
	case 0:
	case 1:
		for key, val := range tags {
			set = v.with(key, val)
		}
	default:
		all := v.tags.Map()
		maps.Copy(all, tags)
		set = v.registry.Tags(all)
	}
	v.sample(metric, value, set)
}

// Metric returns the metric of that name; see [Meter].
func (v *vm) Metric(name string, kind results.MetricKind, contains results.Contains) (*results.Metric, error) {
	if !v.inInit {
		return nil, errorf(ExitScript, "metric %s: metrics can be made in init code only", name)
	}
	return v.registry.Metric(name, kind, contains)
}

var _ Meter = (*vm)(nil)

// builtinMetrics are the metrics that k6 defines and this package fills.
type builtinMetrics struct {
	vus, vusMax, iterations, iterationDuration, dropped, checks, groupDuration, dataSent, dataReceived, lateness *results.Metric
}

// registerMetrics makes all metrics that k6 defines, so that thresholds can
// name those of modules that the script does not use.
func registerMetrics(r *results.Registry) builtinMetrics {
	for _, m := range [...]struct {
		name     string
		kind     results.MetricKind
		contains results.Contains
	}{
		{"http_reqs", results.Counter, results.ContainsDefault}, {"http_req_failed", results.Rate, results.ContainsDefault},
		{"http_req_duration", results.Trend, results.ContainsTime}, {"http_req_blocked", results.Trend, results.ContainsTime},
		{"http_req_connecting", results.Trend, results.ContainsTime}, {"http_req_tls_handshaking", results.Trend, results.ContainsTime},
		{"http_req_sending", results.Trend, results.ContainsTime}, {"http_req_waiting", results.Trend, results.ContainsTime},
		{"http_req_receiving", results.Trend, results.ContainsTime}, {"ws_sessions", results.Counter, results.ContainsDefault},
		{"ws_msgs_sent", results.Counter, results.ContainsDefault}, {"ws_msgs_received", results.Counter, results.ContainsDefault},
		{"ws_ping", results.Trend, results.ContainsTime}, {"ws_session_duration", results.Trend, results.ContainsTime},
		{"ws_connecting", results.Trend, results.ContainsTime}, {"grpc_req_duration", results.Trend, results.ContainsTime},
		{"grpc_streams", results.Counter, results.ContainsDefault}, {"grpc_streams_msgs_sent", results.Counter, results.ContainsDefault},
		{"grpc_streams_msgs_received", results.Counter, results.ContainsDefault},
	} {
		r.MustMetric(m.name, m.kind, m.contains)
	}
	return builtinMetrics{
		vus:               r.MustMetric("vus", results.Gauge, results.ContainsDefault),
		vusMax:            r.MustMetric("vus_max", results.Gauge, results.ContainsDefault),
		iterations:        r.MustMetric("iterations", results.Counter, results.ContainsDefault),
		iterationDuration: r.MustMetric("iteration_duration", results.Trend, results.ContainsTime),
		dropped:           r.MustMetric("dropped_iterations", results.Counter, results.ContainsDefault),
		checks:            r.MustMetric("checks", results.Rate, results.ContainsDefault),
		groupDuration:     r.MustMetric("group_duration", results.Trend, results.ContainsTime),
		dataSent:          r.MustMetric("data_sent", results.Counter, results.ContainsData),
		dataReceived:      r.MustMetric("data_received", results.Counter, results.ContainsData),
		// By how much starts missed the schedule of arrival rates. Not one of
		// k6's: without it a stall of the generator would not show.
		lateness: r.MustMetric("iteration_lateness", results.Trend, results.ContainsTime),
	}
}

func milli(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
