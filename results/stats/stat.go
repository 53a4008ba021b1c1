package stats

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Kind is the name of a statistic without its argument.
type Kind string

// The statistics that sinks know. A percentile carries its argument in
// [Stat.Percent].
const (
	Count      Kind = "count"
	PerSecond  Kind = "rate" // of a Counter: per second; of a Rate: the share
	Value      Kind = "value"
	Passes     Kind = "passes"
	Fails      Kind = "fails"
	Avg        Kind = "avg"
	Min        Kind = "min"
	Med        Kind = "med"
	Max        Kind = "max"
	Percentile Kind = "p"
)

// Stat names one statistic of a sink. It is comparable.
type Stat struct {
	Kind    Kind
	Percent float64 // Percentile only, 0 to 100
}

// ParseStat reads a statistic as k6 writes it: avg, count, p(99.9) …
func ParseStat(s string) (Stat, error) {
	switch k := Kind(s); k {
	case Count, PerSecond, Value, Passes, Fails, Avg, Min, Med, Max:
		return Stat{Kind: k}, nil
	}
	arg, opened := strings.CutPrefix(s, "p(")
	arg, closed := strings.CutSuffix(arg, ")")
	if !opened || !closed {
		return Stat{}, fmt.Errorf("unknown statistic %q: want count, rate, value, avg, min, med, max or p(N)", s)
	}
	p, err := strconv.ParseFloat(strings.TrimSpace(arg), 64)
	if err != nil || !(p >= 0 && p <= 100) {
		return Stat{}, fmt.Errorf("statistic %q: want a percentile from p(0) to p(100)", s)
	}
	return Stat{Kind: Percentile, Percent: p}, nil
}

// String returns the form that [ParseStat] reads.
func (s Stat) String() string {
	if s.Kind == Percentile {
		return "p(" + strconv.FormatFloat(s.Percent, 'f', -1, 64) + ")"
	}
	return string(s.Kind)
}

// Sink aggregates the values of one series.
type Sink interface {
	// Add takes one value, measured at the offset at. NaN is no value and is
	// ignored.
	Add(at time.Duration, value float64)
	// Empty reports whether no value was added.
	Empty() bool
	// Stat returns a statistic; elapsed is the time that the values span and
	// matters to rates per second only. An empty sink answers 0. It returns
	// false when sinks of this kind do not have the statistic.
	Stat(s Stat, elapsed time.Duration) (float64, bool)
}

// NewSink returns an empty sink for a kind of metric: counter, gauge, rate, or
// else trend.
func NewSink(kind string) Sink {
	switch kind {
	case "counter":
		return &Counter{}
	case "gauge":
		return &Gauge{}
	case "rate":
		return &Rate{}
	default:
		return &Trend{}
	}
}
