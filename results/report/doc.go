// Package report renders what the analysis of a run came to: for terminals,
// for CI and for other programs. It computes nothing: every number that it
// shows stands in the verdict or the summary.
package report
