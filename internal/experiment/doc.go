// Package experiment conducts one run: it checks everything that can be
// checked before anything starts, starts the target, runs load and timeline
// side by side on one clock, records what happens, takes everything down
// again, and judges the record.
package experiment
