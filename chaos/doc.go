// Package chaos injects faults into a target and takes them back.
//
// A [Fault] describes itself, validates a step, plans what exactly it would
// touch, injects, reports whether it is effective, reverts, and recovers what
// a dead controller left. [Runner] drives the timeline of a plan through that
// life cycle: it writes the handle to a [Journal] before a fault touches
// anything, bounds every injection by a lease, and takes everything back when
// the run ends, however it ends.
package chaos
