package analysis

import (
	"fmt"
	"math"
	"time"

	"github.com/metachaos/metachaos/results"
	"github.com/metachaos/metachaos/targets"
)

// recoveredShare of the baseline's goodput is what counts as recovered.
const recoveredShare = 0.9

// availabilityTally counts what the application got. Operations are reads,
// writes and scans.
//
//	availability.goodput       = operations done / seconds of the window
//	availability.success_rate  = operations done / operations
//	availability.timeouts      = operations whose outcome a time-out left unknown
//	availability.recovery_time = after a fault: seconds from its end to the
//	    first whole second, counted from that end, with a goodput of at least
//	    0.9 of the baseline's; infinite when the load ended before one.
//	    In the whole run: the longest of them.
type availabilityTally struct {
	span span

	operations, done  uint64
	failed, timeouts  Evidence
	all               Evidence
	secondsAfterFault map[int64]uint64 // operations done, by second of an after window
}

func newAvailabilityTally(s span) *availabilityTally {
	return &availabilityTally{span: s, secondsAfterFault: map[int64]uint64{}}
}

func (t *availabilityTally) event(line int, e *targets.Event) {
	if !isOperation(e.Verb) {
		return
	}
	t.operations++
	t.all.add(results.EventsFile, line, e.Start, e.End)
	if e.Outcome == targets.Done {
		t.done++
		if t.span.window.Kind == After {
			t.secondsAfterFault[int64((e.End-t.span.from)/time.Second)]++
		}
		return
	}
	t.failed.add(results.EventsFile, line, e.Start, e.End)
	if e.Code == targets.CodeTimeout {
		t.timeouts.add(results.EventsFile, line, e.Start, e.End)
	}
}

func (t *availabilityTally) report(out figures, s *scene) {
	out["availability.goodput"] = t.goodput()
	out["availability.success_rate"] = share(t.done, t.operations, "operations").with(t.failed)
	out["availability.timeouts"] = count(t.timeouts.Count).with(t.timeouts)
	if t.operations == 0 {
		out["availability.timeouts"] = unknown("there are no operations in the window")
	}
	if t.span.window.Kind == After {
		out["availability.recovery_time"] = t.recovery(s)
	}
}

// shortestGoodput is the least that goodput is judged over: in less, whether
// an operation happens to end within the window decides.
const shortestGoodput = time.Second

func (t *availabilityTally) goodput() figure {
	seconds := t.span.seconds()
	if seconds < shortestGoodput.Seconds() {
		return unknown("the window lasts %.3g s: goodput is judged over %v or more", seconds, shortestGoodput)
	}
	return figure{
		value:    float64(t.done) / seconds,
		detail:   fmt.Sprintf("%d operations done in %.3g s", t.done, seconds),
		evidence: t.all,
	}
}

func (t *availabilityTally) recovery(s *scene) figure {
	if s.goodput <= 0 {
		return unknown("the baseline has no goodput to come back to")
	}
	whole := int64(t.span.seconds())
	if whole == 0 {
		return unknown("the load ended within a second after the fault")
	}
	for second := range whole {
		if float64(t.secondsAfterFault[second]) >= recoveredShare*s.goodput {
			return figure{value: float64(second), evidence: t.all}
		}
	}
	return figure{
		value:    math.Inf(1),
		detail:   fmt.Sprintf("no second of the %d until the end of the load came back to %g of the baseline's %.4g operations/s", whole, recoveredShare, s.goodput),
		evidence: t.all,
	}
}

// longestRecovery combines the recoveries of all faults for the whole run.
func longestRecovery(after []figure) figure {
	longest := unknown("no fault ended within the run")
	for _, f := range after {
		switch {
		case !f.known() && !longest.known():
			longest.missing = f.missing
		case !f.known():
			longest.doubt = f.missing
		case !longest.known():
			f.doubt = longest.doubt
			longest = f
		case f.value > longest.value:
			f.doubt = longest.doubt
			longest = f
		}
	}
	return longest
}
