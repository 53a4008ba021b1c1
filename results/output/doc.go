// Package output sends the samples of a run, as they come, to files and
// services outside of this program: NDJSON and CSV files, Prometheus remote
// write, and OpenTelemetry. Names of kinds, settings and fields are those of
// k6, so that what reads its outputs reads these.
package output
