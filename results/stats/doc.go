// Package stats aggregates the values of metrics without keeping them all.
//
// Each kind of metric has a sink whose size does not grow with the number of
// values: [Counter], [Gauge], [Rate] and [Trend]. Sinks of the same kind
// merge: sinks filled by different workers, merged in any order, answer as one
// sink that saw every value would (a Trend within its error). The package is
// pure: it reads no clock and starts nothing.
//
// Sinks are not safe for concurrent use.
package stats
