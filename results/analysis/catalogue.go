package analysis

import (
	"fmt"
	"slices"

	"github.com/metachaos/metachaos/internal/suggest"
)

// Better says in which direction a metric improves.
type Better string

// The directions.
const (
	Lower  Better = "lower"
	Higher Better = "higher"
)

// Ratio is the unit of a metric that is one number divided by another.
const Ratio = "1"

// MetricInfo describes a metric that expectations can name.
type MetricInfo struct {
	Name   string
	Unit   string // [Ratio] for plain ratios
	Better Better
	// By is the label by which the metric can be narrowed, as in
	// pulls.total{cause:ttl}; empty when it has none.
	By  string
	Doc string // one line
}

// The labels.
const (
	byCause = "cause"
	byCode  = "code"
)

// Catalogue returns every metric that expectations can name, sorted by name.
func Catalogue() []MetricInfo {
	return []MetricInfo{
		{"availability.goodput", "operations/s", Higher, "", "reads, writes and scans done per second"},
		{"availability.recovery_time", "s", Lower, "", "time from the end of a fault until a second's goodput is 0.9 of the baseline again"},
		{"availability.success_rate", Ratio, Higher, "", "share of the reads, writes and scans that were done"},
		{"availability.timeouts", "operations", Lower, "", "reads, writes and scans whose outcome a time-out left unknown"},
		{"cache.hit_rate", Ratio, Higher, "", "share of the reads and writes that found their object in the client's cache"},
		{"duplicates.missing_rate", Ratio, Lower, "", "share of the documents that scans should have returned and did not"},
		{"duplicates.rate", Ratio, Lower, "", "share of the documents returned by scans that were returned before by the same scan"},
		{"herd.factor", Ratio, Lower, "", "control-plane calls in the busiest second over those of a steady second of the baseline"},
		{"herd.factor_100ms", Ratio, Lower, "", "the same for the busiest 100 ms"},
		{"herd.peak_qps", "calls/s", Lower, byCause, "control-plane calls of clients in the busiest second"},
		{"herd.total", "calls", Lower, byCause, "control-plane calls of clients"},
		{"pulls.total", "pulls", Lower, byCause, "metadata pulls that cache clients began, answered or not"},
		{"push.lost", "pushes", Lower, "", "pushes that were dropped on their way"},
		{"push.sent", "pushes", Lower, "", "pushes of the control plane, including those that were dropped"},
		{"redirects.hops_p99", "requests", Lower, "", "99th percentile of the requests that a read or write took"},
		{"redirects.loops", "operations", Lower, "", "reads and writes that were led back to a node with no newer epoch"},
		{"redirects.per_op", "redirects/operation", Lower, "", "redirects followed per read or write"},
		{"refusals.rate", Ratio, Lower, byCode, "share of the requests that nodes refused"},
		{"safety.stale_owner_writes", "operations", Lower, "", "writes acknowledged by a shard that was no owner of record at any time during the write"},
		{"staleness.max_age", "s", Lower, "", "longest time between the first change that a stale read missed and that read"},
		{"staleness.max_lag_epochs", "epochs", Lower, "", "most epochs that a stale read was behind"},
		{"staleness.rate", Ratio, Lower, "", "share of the reads served by a shard that was no owner of record at any time during the read"},
	}
}

// LookupMetric returns the metric of that name, or an error with the nearest
// known name.
func LookupMetric(name string) (MetricInfo, error) {
	all := Catalogue()
	i, found := slices.BinarySearchFunc(all, name, func(m MetricInfo, name string) int {
		switch {
		case m.Name < name:
			return -1
		case m.Name > name:
			return 1
		}
		return 0
	})
	if found {
		return all[i], nil
	}
	var known []string
	for _, m := range all {
		known = append(known, m.Name)
	}
	return MetricInfo{}, fmt.Errorf("unknown metric %q: %s (see metachaos list metrics)", name, suggest.Name(name, known))
}
