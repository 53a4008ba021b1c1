package load

import (
	"math"
	"math/bits"
	"time"
)

// Pacer is a schedule of starts. It is a pure function: whoever keeps it must
// look at the clock.
type Pacer interface {
	// Due returns the offset at which start n, counted from 0, is due. It
	// never decreases with n. It returns false when the schedule has no start n.
	Due(n uint64) (time.Duration, bool)
}

// ConstantPace is due Rate times per Unit until Duration.
//
//	rate ┤────────────┐
//	     └────────────┴──▶ time
type ConstantPace struct {
	Rate     int64 // at least 1
	Unit     time.Duration
	Duration time.Duration
}

var _ Pacer = ConstantPace{}

// Due returns n·Unit/Rate, rounded down, without drift at any n.
func (p ConstantPace) Due(n uint64) (time.Duration, bool) {
	hi, lo := bits.Mul64(n, uint64(p.Unit))
	if hi >= uint64(p.Rate) { // the quotient would not fit: beyond any run
		return 0, false
	}
	q, _ := bits.Div64(hi, lo, uint64(p.Rate))
	if q >= uint64(p.Duration) {
		return 0, false
	}
	return time.Duration(q), true
}

// Stage is one leg of a ramp: the way to Target, in a straight line, within
// Duration. A stage without duration jumps.
type Stage struct {
	Duration time.Duration
	Target   int64
}

func stagesDuration(stages []Stage) time.Duration {
	var d time.Duration
	for _, s := range stages {
		d += s.Duration
	}
	return d
}

// RampPace changes its rate along stages, from Start.
//
//	rate ┤   ╱──╲
//	     │  ╱    ╲
//	     └─╱──────╲──▶ time
//
// Start n is due when the area under the line exceeds n: where the rate is
// zero nothing is due, and what was due at its end waits for the next rise.
type RampPace struct {
	Start  int64
	Unit   time.Duration
	Stages []Stage
}

var _ Pacer = RampPace{}

// Due solves, in the stage in which the area reaches n, the quadratic for time.
func (p RampPace) Due(n uint64) (time.Duration, bool) {
	unit := p.Unit.Seconds()
	from := float64(p.Start) / unit // per second
	missing := float64(n)
	var at time.Duration
	for _, s := range p.Stages {
		to := float64(s.Target) / unit
		length := s.Duration.Seconds()
		area := (from + to) / 2 * length
		if missing < area {
			return at + time.Duration(timeToArea(from, (to-from)/length, missing)*float64(time.Second)), true
		}
		missing = math.Max(0, missing-area)
		at += s.Duration
		from = to
	}
	return 0, false
}

// timeToArea returns the t at which from·t + slope·t²/2 = area. The form of
// the solution does not lose digits when slope is near zero.
func timeToArea(from, slope, area float64) float64 {
	if area == 0 {
		return 0
	}
	root := math.Sqrt(math.Max(0, from*from+2*slope*area))
	return 2 * area / (from + root)
}

// VUChange says that from At on there are to be VUs virtual users.
type VUChange struct {
	At  time.Duration
	VUs int
}

// rampVUs returns the changes along stages, from start. On the way from a to
// b in time d, each further VU comes or goes when the line has reached it.
func rampVUs(start int64, stages []Stage) []VUChange {
	changes := []VUChange{{0, int(start)}}
	set := func(at time.Duration, n int64) {
		last := &changes[len(changes)-1]
		switch {
		case int64(last.VUs) == n:
		case last.At == at:
			last.VUs = int(n)
			if k := len(changes); k > 1 && changes[k-2].VUs == int(n) {
				changes = changes[:k-1] // there and back at once
			}
		default:
			changes = append(changes, VUChange{at, int(n)})
		}
	}
	var at time.Duration
	from := start
	for _, s := range stages {
		steps, sign := s.Target-from, int64(1)
		if steps < 0 {
			steps, sign = -steps, -1
		}
		if s.Duration == 0 {
			set(at, s.Target)
		} else {
			for i := int64(1); i <= steps; i++ {
				set(at+time.Duration(float64(s.Duration)*float64(i)/float64(steps)), from+sign*i)
			}
		}
		at += s.Duration
		from = s.Target
	}
	return changes
}
