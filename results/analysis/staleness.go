package analysis

import (
	"fmt"
	"time"

	"github.com/metachaos/metachaos/results"
	"github.com/metachaos/metachaos/targets"
)

// stalenessTally judges, by the truth alone, the reads and writes that were
// done.
//
//	staleness.rate            = stale reads / reads judged
//	staleness.max_lag_epochs  = most epochs that a stale read was behind
//	staleness.max_age         = longest time from the first missed change to a stale read
//	safety.stale_owner_writes = writes acknowledged by a shard that was no owner of record
//
// An operation is stale when no instant between its start and its end had its
// serving shard as the owner of record. One on an object whose owner of record
// is not known, because the truth does not reach back so far or has no such
// object, cannot be judged.
type stalenessTally struct {
	history history

	reads, unjudgedReads   uint64
	writes, unjudgedWrites uint64
	maxLag                 uint64
	maxAge                 time.Duration

	staleReads, staleWrites Evidence
}

func (t *stalenessTally) event(line int, e *targets.Event) {
	if e.Outcome != targets.Done || e.Object.Kind != "" && !hasOwner(e.Object.Kind) {
		return
	}
	switch e.Verb {
	case targets.EventRead:
		j := t.history.judge(e)
		t.reads, t.unjudgedReads = tallied(j, t.reads, t.unjudgedReads)
		if j.stale {
			t.maxLag, t.maxAge = max(t.maxLag, j.lag), max(t.maxAge, j.age)
			t.staleReads.add(results.EventsFile, line, e.Start, e.End)
		}
	case targets.EventWrite:
		j := t.history.judge(e)
		t.writes, t.unjudgedWrites = tallied(j, t.writes, t.unjudgedWrites)
		if j.stale {
			t.staleWrites.add(results.EventsFile, line, e.Start, e.End)
		}
	}
}

func tallied(j judgement, judged, unjudged uint64) (uint64, uint64) {
	if j.judged {
		return judged + 1, unjudged
	}
	return judged, unjudged + 1
}

func (t *stalenessTally) report(out figures, _ *scene) {
	rate := share(t.staleReads.Count, t.reads, "reads judged").with(t.staleReads)
	lag := figure{value: float64(t.maxLag), missing: rate.missing}.with(t.staleReads)
	age := figure{value: t.maxAge.Seconds(), missing: rate.missing}.with(t.staleReads)
	writes := count(t.staleWrites.Count).with(t.staleWrites)
	writes.detail = fmt.Sprintf("%d of %d writes judged", t.staleWrites.Count, t.writes)
	if t.writes == 0 {
		writes.missing = "there are no writes judged in the window"
	}
	reads := doubt(t.unjudgedReads, "reads")
	rate.doubt, lag.doubt, age.doubt = reads, reads, reads
	writes.doubt = doubt(t.unjudgedWrites, "writes")
	out["staleness.rate"] = rate
	out["staleness.max_lag_epochs"] = lag
	out["staleness.max_age"] = age
	out["safety.stale_owner_writes"] = writes
}

func doubt(unjudged uint64, what string) string {
	if unjudged == 0 {
		return ""
	}
	return fmt.Sprintf("the truth does not say who owned the object of %d %s", unjudged, what)
}
