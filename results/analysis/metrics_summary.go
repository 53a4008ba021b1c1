package analysis

import (
	"time"

	"github.com/metachaos/metachaos/results"
	"github.com/metachaos/metachaos/results/stats"
)

// DefaultTrendStats are the statistics of a Trend in a summary unless others
// are asked for.
func DefaultTrendStats() []stats.Stat {
	return []stats.Stat{{Kind: stats.Avg}, {Kind: stats.Min}, {Kind: stats.Med}, {Kind: stats.Max},
		{Kind: stats.Percentile, Percent: 90}, {Kind: stats.Percentile, Percent: 95}}
}

// Summary is the state of all metrics at one moment, as plain data. The
// end-of-test text, the data of handleSummary and the exported file are made
// from it.
type Summary struct {
	Elapsed time.Duration   `json:"elapsed"`
	Metrics []MetricSummary `json:"metrics"`
	Root    *Group          `json:"root_group"`
}

// MetricSummary is one metric or sub-metric.
type MetricSummary struct {
	Name string `json:"name"`
	// Parent is the metric that a sub-metric is part of.
	Parent     string             `json:"parent,omitempty"`
	Type       results.MetricKind `json:"type"`
	Contains   results.Contains   `json:"contains"`
	Values     []Statistic        `json:"values"`
	Thresholds []ThresholdResult  `json:"thresholds,omitempty"`
}

// Statistic is one value of a metric, under the name that k6 gives it.
type Statistic struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

// ThresholdResult is one threshold with what was observed.
type ThresholdResult struct {
	Source   string  `json:"source"`
	Stat     string  `json:"stat"`
	Observed float64 `json:"observed"`
	OK       bool    `json:"ok"`
}

// Value returns the statistic of that name.
func (m *MetricSummary) Value(name string) (float64, bool) {
	for _, v := range m.Values {
		if v.Name == name {
			return v.Value, true
		}
	}
	return 0, false
}

// Find returns the metric or sub-metric of that name, or nil.
func (s *Summary) Find(name string) *MetricSummary {
	for i := range s.Metrics {
		if s.Metrics[i].Name == name {
			return &s.Metrics[i]
		}
	}
	return nil
}

// Crossed reports whether any threshold does not hold.
func (s *Summary) Crossed() bool {
	for _, m := range s.Metrics {
		for _, t := range m.Thresholds {
			if !t.OK {
				return true
			}
		}
	}
	return false
}

// Summary returns the state of all metrics that have samples or thresholds.
// Elapsed is the time that the samples span; trendStats are the statistics of
// Trends, [DefaultTrendStats] when empty.
func (m *Metrics) Summary(elapsed time.Duration, trendStats ...stats.Stat) Summary {
	if len(trendStats) == 0 {
		trendStats = DefaultTrendStats()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	sum := Summary{Elapsed: elapsed, Metrics: []MetricSummary{}, Root: m.checks.root.clone()}
	for _, s := range m.ordered() {
		if s.sink.Empty() && len(s.thresholds) == 0 {
			continue
		}
		sum.Metrics = append(sum.Metrics, s.summary(elapsed, trendStats))
	}
	return sum
}

func (s *series) summary(elapsed time.Duration, trendStats []stats.Stat) MetricSummary {
	out := MetricSummary{Name: s.name, Type: s.metric.Kind, Contains: s.metric.Contains}
	if s.tags != nil {
		out.Parent = s.metric.Name
	}
	for _, st := range summaryStats(s.metric.Kind, trendStats) {
		value, _ := s.sink.Stat(st, elapsed)
		out.Values = append(out.Values, Statistic{Name: st.String(), Value: value})
	}
	for _, t := range s.thresholds {
		observed, ok := t.expression.evaluate(s.sink, elapsed)
		out.Thresholds = append(out.Thresholds,
			ThresholdResult{Source: t.Source, Stat: t.expression.Stat.String(), Observed: observed, OK: ok})
	}
	return out
}

func summaryStats(kind results.MetricKind, trendStats []stats.Stat) []stats.Stat {
	switch kind {
	case results.Counter:
		return []stats.Stat{{Kind: stats.Count}, {Kind: stats.PerSecond}}
	case results.Gauge:
		return []stats.Stat{{Kind: stats.Value}, {Kind: stats.Min}, {Kind: stats.Max}}
	case results.Rate:
		return []stats.Stat{{Kind: stats.PerSecond}, {Kind: stats.Passes}, {Kind: stats.Fails}}
	default:
		return trendStats
	}
}

// HandleSummaryMetrics returns the value of data.metrics that k6 hands to
// handleSummary: {name: {type, contains, values, thresholds: {expression: {ok}}}}.
func (s *Summary) HandleSummaryMetrics() map[string]any {
	all := make(map[string]any, len(s.Metrics))
	for _, m := range s.Metrics {
		values := make(map[string]float64, len(m.Values))
		for _, v := range m.Values {
			values[v.Name] = v.Value
		}
		out := map[string]any{"type": m.Type, "contains": m.Contains, "values": values}
		if len(m.Thresholds) > 0 {
			thresholds := make(map[string]any, len(m.Thresholds))
			for _, t := range m.Thresholds {
				thresholds[t.Source] = map[string]bool{"ok": t.OK}
			}
			out["thresholds"] = thresholds
		}
		all[m.Name] = out
	}
	return all
}
