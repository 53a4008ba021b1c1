package analysis

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/metachaos/metachaos/results"
	"github.com/metachaos/metachaos/targets"
)

// redirectTally follows the hops of reads and writes. (A scan asks every
// shard by design, so its hops are no redirects.)
//
//	redirects.per_op   = redirects followed / operations
//	redirects.hops_p99 = nearest-rank 99th percentile of requests per operation
//	redirects.loops    = operations with a loop
//
// A redirect is a refusal that names the owner in another shard than the node
// asked, with a request after it. A loop is, as SEMANTICS defines it, a
// revisit of the same node for the same object without an epoch increase in
// between: the operation was redirected away from a node, asked another, and
// came back with an epoch that is not newer. A client library that hides its
// hops reports their number only: every request after the first counts as a
// redirect then, and loops cannot be seen.
type redirectTally struct {
	shardOf map[targets.NodeID]string

	operations uint64
	redirects  uint64
	opaque     uint64 // operations with several requests and no hops
	requests   map[int]uint64
	redirected Evidence
	loops      Evidence
}

func newRedirectTally(shardOf map[targets.NodeID]string) *redirectTally {
	return &redirectTally{shardOf: shardOf, requests: map[int]uint64{}}
}

func (t *redirectTally) event(line int, e *targets.Event) {
	if e.Verb != targets.EventRead && e.Verb != targets.EventWrite {
		return
	}
	t.operations++
	t.requests[max(1, e.HopCount, len(e.Hops))]++
	followed := 0
	switch {
	case len(e.Hops) > 0:
		followed = t.followed(e.Hops)
	case e.HopCount > 1:
		t.opaque++
		followed = e.HopCount - 1
	}
	if followed > 0 {
		t.redirects += uint64(followed)
		t.redirected.add(results.EventsFile, line, e.Start, e.End)
	}
	if t.loop(e.Hops) {
		t.loops.add(results.EventsFile, line, e.Start, e.End)
	}
}

// redirectsAway reports whether the node asked names an owner elsewhere.
func (t *redirectTally) redirectsAway(h targets.Hop) bool {
	return h.Code != "" && h.Owner != "" && h.Owner != t.shardOf[h.Node]
}

func (t *redirectTally) followed(hops []targets.Hop) (n int) {
	for _, h := range hops[:len(hops)-1] {
		if t.redirectsAway(h) {
			n++
		}
	}
	return n
}

func (t *redirectTally) loop(hops []targets.Hop) bool {
	left := map[targets.NodeID]departure{}
	for i, h := range hops {
		d, been := left[h.Node]
		if been && d.index < i-1 && h.Epoch <= d.epoch {
			return true
		}
		if t.redirectsAway(h) {
			left[h.Node] = departure{i, h.Epoch}
		}
	}
	return false
}

// departure is where a chain of hops was redirected away from a node, and the
// epoch that it came with.
type departure struct {
	index int
	epoch targets.Epoch
}

func (t *redirectTally) report(out figures, _ *scene) {
	perOp := share(t.redirects, t.operations, "reads and writes")
	if perOp.known() {
		perOp.detail = fmt.Sprintf("%d redirects in %d operations", t.redirects, t.operations)
	}
	out["redirects.per_op"] = perOp.with(t.redirected)
	if t.operations == 0 {
		out["redirects.hops_p99"] = perOp
		out["redirects.loops"] = perOp
		return
	}
	out["redirects.hops_p99"] = figure{value: float64(percentile(t.requests, t.operations, 99)), evidence: t.redirected}
	loops := count(t.loops.Count).with(t.loops)
	if t.opaque > 0 {
		loops.doubt = fmt.Sprintf("%d operations of several requests do not name their nodes", t.opaque)
	}
	out["redirects.loops"] = loops
}

// percentile returns the nearest-rank percentile of counted values.
func percentile(counts map[int]uint64, total uint64, p uint64) int {
	rank := (total*p + 99) / 100 // rounded up
	var seen uint64
	for _, v := range slices.Sorted(maps.Keys(counts)) {
		if seen += counts[v]; seen >= rank {
			return v
		}
	}
	return 0
}

// refusalTally counts what nodes refused.
//
//	refusals.rate = refused requests / requests, of reads, writes and scans
//
// A request whose outcome is unknown (a time-out, a broken connection) is no
// refusal. An operation that records no hops is one request.
type refusalTally struct {
	requests uint64
	refused  Evidence
	byCode   map[targets.Code]*Evidence
}

func newRefusalTally() *refusalTally {
	return &refusalTally{byCode: map[targets.Code]*Evidence{}}
}

func (t *refusalTally) event(line int, e *targets.Event) {
	if !isOperation(e.Verb) {
		return
	}
	if len(e.Hops) == 0 {
		t.requests += uint64(max(1, e.HopCount))
		if e.Outcome == targets.Refused {
			t.refuse(line, e.Code, e.Start, e.End)
		}
		return
	}
	t.requests += uint64(len(e.Hops))
	for _, h := range e.Hops {
		if h.Code != "" && h.Code != targets.CodeTimeout && h.Code != targets.CodeConnectionLost {
			t.refuse(line, h.Code, e.Start, e.End)
		}
	}
}

func (t *refusalTally) refuse(line int, code targets.Code, from, to time.Duration) {
	t.refused.add(results.EventsFile, line, from, to)
	e := t.byCode[code]
	if e == nil {
		e = &Evidence{}
		t.byCode[code] = e
	}
	e.add(results.EventsFile, line, from, to)
}

func (t *refusalTally) report(out figures, _ *scene) {
	out["refusals.rate"] = share(t.refused.Count, t.requests, "requests").with(t.refused)
	for code, e := range t.byCode {
		out[labelled("refusals.rate", byCode, string(code))] = share(e.Count, t.requests, "requests").with(*e)
	}
}

// isOperation tells what the application asked for from what its cache
// client did on the side.
func isOperation(v targets.EventVerb) bool {
	return v == targets.EventRead || v == targets.EventWrite || v == targets.EventScan
}
