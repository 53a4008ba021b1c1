package targets

import (
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Base is the one monotonic instant from which all offsets of a run count.
// Processes on one host share it through its text form, since they share
// CLOCK_MONOTONIC (clock_gettime(2)), which no change of the wall clock moves.
// The zero Base is not usable.
type Base struct {
	start time.Time // carries Go's monotonic reading
	raw   int64     // CLOCK_MONOTONIC in nanoseconds at start
}

// NewBase returns a base at this instant.
func NewBase() Base { return Base{start: time.Now(), raw: monotonicNanos()} }

// Now returns the offset of this instant from the base. Inside a synctest
// bubble it follows the bubble's time.
func (b Base) Now() time.Duration { return time.Since(b.start) }

// Wall returns the wall-clock time of the base, for people and manifests;
// never compute with it.
func (b Base) Wall() time.Time { return b.start }

// String returns the form that [ParseBase] reads on the same host and boot.
func (b Base) String() string { return strconv.FormatInt(b.raw, 10) }

// ParseBase restores a base that another process of this host printed.
func ParseBase(s string) (Base, error) {
	raw, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return Base{}, fmt.Errorf("parse base %q: want nanoseconds of the monotonic clock", s)
	}
	return Base{start: time.Now().Add(-time.Duration(monotonicNanos() - raw)), raw: raw}, nil
}

func monotonicNanos() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic("clock_gettime(CLOCK_MONOTONIC): " + err.Error()) // cannot fail on a kernel that has it
	}
	return ts.Nano()
}
