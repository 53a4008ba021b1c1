// Package analysis judges the record of a run.
//
// [Judge] reads a run folder and gives a [Verdict]: what the plan expected and
// what was measured instead, the thresholds of the script, the faults, and the
// assumptions without which nothing passes. Each analyzer is a file with its
// formulas in the comment of its tally; [Catalogue] lists their metrics. They
// take records in any order and see nothing but the record, so any old run
// can be judged again.
//
// [Metrics] aggregates the samples of a run while it runs, and evaluates the
// thresholds of its script.
package analysis
