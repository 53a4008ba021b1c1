// Package load decides when iterations start and on which virtual user (VU).
//
// A [Runner] plays the scenarios of a test side by side. Each scenario has an
// [Executor]: closed ones (constant-vus, ramping-vus, shared-iterations,
// per-vu-iterations) start the next iteration of a VU when its last one has
// ended; open ones (constant-arrival-rate, ramping-arrival-rate) start
// iterations on an absolute schedule, whatever became of earlier ones. Every
// iteration is told when it was due, so that a stall of the target or of this
// program shows as lateness instead of as missing load.
//
// The package sees nothing of scripts or metrics: a VU is an [VU].
package load
