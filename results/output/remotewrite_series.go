package output

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/metachaos/metachaos/results"
	"github.com/metachaos/metachaos/results/stats"
)

// seriesSet aggregates samples by metric and labels over the whole run.
type seriesSet struct {
	run        Run
	trendStats []stats.Stat
	histograms bool

	byTags   map[seriesKey]*rwSeries // remembered, bounded
	byLabels map[string]*rwSeries
	all      []*rwSeries
}

type seriesKey struct {
	metric *results.Metric
	tags   *results.Tags
}

// rwSeries is one metric with one set of labels.
type rwSeries struct {
	metric    *results.Metric
	labels    []label // without the name
	sink      stats.Sink
	histogram *histogram
	touched   bool // since it was sent last
}

// invalidLabel are the characters that names of labels cannot hold.
var invalidLabel = regexp.MustCompile(`[^a-zA-Z0-9_]`)

func newSeriesSet(run Run, trendStats []stats.Stat, histograms bool) *seriesSet {
	return &seriesSet{run: run, trendStats: trendStats, histograms: histograms,
		byTags: map[seriesKey]*rwSeries{}, byLabels: map[string]*rwSeries{}}
}

func (set *seriesSet) add(s *results.Sample) {
	series := set.of(s.Metric, s.Tags)
	series.touched = true
	if series.histogram != nil {
		series.histogram.add(inSeconds(s.Metric, s.Value))
		return
	}
	series.sink.Add(s.At, s.Value)
}

func (set *seriesSet) of(metric *results.Metric, tags *results.Tags) *rwSeries {
	key := seriesKey{metric, tags}
	if known := set.byTags[key]; known != nil {
		return known
	}
	labels := labelsOf(set.run.split(tags).tags)
	text := metric.Name
	for _, l := range labels {
		text += "\x00" + l.name + "\x00" + l.value
	}
	series := set.byLabels[text]
	if series == nil {
		series = &rwSeries{metric: metric, labels: labels, sink: stats.NewSink(string(metric.Kind))}
		if metric.Kind == results.Trend && set.histograms {
			series.histogram = newHistogram()
		}
		set.byLabels[text] = series
		set.all = append(set.all, series)
	}
	if len(set.byTags) >= maxRemembered {
		clear(set.byTags)
	}
	set.byTags[key] = series
	return series
}

// labelsOf makes labels of tags: what a name cannot hold becomes an
// underscore, and an empty value is as good as no label.
func labelsOf(tags map[string]string) []label {
	var all []label
	for _, name := range sortedKeys(tags) {
		clean := invalidLabel.ReplaceAllString(name, "_")
		if clean == "" || clean[0] >= '0' && clean[0] <= '9' {
			clean = "_" + clean
		}
		taken := slices.ContainsFunc(all, func(l label) bool { return l.name == clean })
		if value := tags[name]; value != "" && !taken {
			all = append(all, label{clean, strings.ToValidUTF8(value, "\uFFFD")})
		}
	}
	return all
}

// points returns what is to be sent of the series: those that were touched, or
// all.
func (set *seriesSet) points(all bool) (points []point, of []*rwSeries) {
	for _, s := range set.all {
		if s.touched || all {
			points = append(points, set.pointsOf(s)...)
			of = append(of, s)
		}
	}
	return points, of
}

func (set *seriesSet) pointsOf(s *rwSeries) []point {
	if s.histogram != nil {
		suffix := ""
		if s.metric.Contains == results.ContainsTime {
			suffix = "_seconds"
		}
		return []point{{labels: s.named(suffix), histogram: s.histogram}}
	}
	switch s.metric.Kind {
	case results.Counter:
		return []point{s.point("_total", stats.Stat{Kind: stats.Count})}
	case results.Gauge:
		p := s.point("", stats.Stat{Kind: stats.Value})
		p.value = inSeconds(s.metric, p.value)
		return []point{p}
	case results.Rate:
		return []point{s.point("_rate", stats.Stat{Kind: stats.PerSecond})}
	}
	var points []point
	for _, st := range set.trendStats {
		points = append(points, s.trendPoint(st))
	}
	return points
}

// statSum asks for the sum of a trend, which sinks do not know by name.
const statSum stats.Kind = "sum"

func (s *rwSeries) trendPoint(st stats.Stat) point {
	switch st.Kind {
	case stats.Count:
		return s.point("_count", st)
	case statSum:
		p := s.point("_sum", stats.Stat{Kind: stats.Avg})
		count, _ := s.sink.Stat(stats.Stat{Kind: stats.Count}, 0)
		p.value = inSeconds(s.metric, p.value*count)
		return p
	}
	suffix := "_" + strings.NewReplacer("(", "", ")", "", ".", "_").Replace(st.String())
	p := s.point(suffix, st)
	p.value = inSeconds(s.metric, p.value)
	return p
}

// inSeconds turns the milliseconds of metrics of time into the base unit of
// Prometheus.
func inSeconds(m *results.Metric, v float64) float64 {
	if m.Contains == results.ContainsTime {
		return v / float64(time.Second/time.Millisecond)
	}
	return v
}

func (s *rwSeries) point(suffix string, st stats.Stat) point {
	value, _ := s.sink.Stat(st, 0)
	return point{labels: s.named(suffix), value: value}
}

// named returns the labels with the name of the metric, sorted.
func (s *rwSeries) named(suffix string) []label {
	labels := append([]label{{"__name__", "k6_" + s.metric.Name + suffix}}, s.labels...)
	slices.SortStableFunc(labels, func(a, b label) int { return cmp.Compare(a.name, b.name) })
	return labels
}
