// Package results holds what a run records and the folder that it records
// into: samples (how fast), events (what happened), truth (what the control
// plane committed), injections (which faults were active) and host metrics,
// all as offsets from one base instant. Analyzers read nothing else, so any
// old run can be judged again.
package results
