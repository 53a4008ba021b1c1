package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/metachaos/metachaos/targets"
)

// herdRecord holds the control-plane calls of clients over the whole run: the
// grants of the truth, or the pull events where there is no truth. Refreshes
// of data nodes are not among them.
//
//	herd.peak_qps     = most calls in any second
//	herd.factor       = that / calls in a steady second
//	herd.factor_100ms = most calls in any 100 ms / calls in a steady 100 ms
//	herd.total        = calls
//
// The bins slide in steps of 10 ms, since bins that stand still cut a herd
// that strikes at their edge in halves. Edges of windows round down to those
// steps.
//
// Steady is the mean rate of the baseline, but cold pulls count with their
// median second: a cold start at the beginning of the load is a herd of its
// own, and would hide the one that is looked for. A steady bin holds at least
// one call: below that, a single call would be a herd. With N clients of TTL
// T the steady rate is N/T; SEMANTICS §9 lists the factors to expect.
type herdRecord struct {
	file  string
	total grid
	cause map[targets.Cause]grid
}

const (
	cellLength   = 10 * time.Millisecond
	secondCells  = int64(time.Second / cellLength)
	instantCells = secondCells / 10 // 100 ms
)

// grid counts calls by cells of 10 ms. It holds only seconds with calls.
type grid map[int64]*[secondCells]cell

type cell struct {
	calls       uint32
	first, last int // lines
}

func newHerdRecord(file string) *herdRecord {
	return &herdRecord{file: file, total: grid{}, cause: map[targets.Cause]grid{}}
}

func (h *herdRecord) call(line int, at time.Duration, cause targets.Cause) {
	if cause == targets.CauseNode {
		return
	}
	g := h.cause[cause]
	if g == nil {
		g = grid{}
		h.cause[cause] = g
	}
	g.add(line, at)
	h.total.add(line, at)
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func cellOf(at time.Duration) int64 { return floorDiv(int64(at), int64(cellLength)) }

func (g grid) add(line int, at time.Duration) {
	index := cellOf(at)
	second := floorDiv(index, secondCells)
	cells := g[second]
	if cells == nil {
		cells = new([secondCells]cell)
		g[second] = cells
	}
	c := &cells[index-second*secondCells]
	if c.calls == 0 {
		c.first, c.last = line, line
	}
	c.calls++
	c.first, c.last = min(c.first, line), max(c.last, line)
}

// placed is a cell with calls and its place.
type placed struct {
	cell
	index int64
}

// within returns the cells of a span that have calls, in order.
func (g grid) within(s span) []placed {
	from, to := cellOf(s.from), cellOf(s.to)
	var out []placed
	for _, second := range slices.Sorted(maps.Keys(g)) {
		for i, c := range g[second] {
			index := second*secondCells + int64(i)
			if c.calls > 0 && index >= from && (s.open || index < to) {
				out = append(out, placed{c, index})
			}
		}
	}
	return out
}

// peak finds the most calls in width neighbouring cells; the earliest of
// equals.
func peak(file string, cells []placed, width int64) Evidence {
	var best, sum uint64
	var bestFirst, bestLast int // indices into cells
	first := 0
	for last, c := range cells {
		sum += uint64(c.calls)
		for cells[first].index <= c.index-width {
			sum -= uint64(cells[first].calls)
			first++
		}
		if sum > best {
			best, bestFirst, bestLast = sum, first, last
		}
	}
	if best == 0 {
		return Evidence{}
	}
	e := summed(file, cells[bestFirst:bestLast+1])
	return e
}

// summed is the evidence of all calls in the cells.
func summed(file string, cells []placed) Evidence {
	if len(cells) == 0 {
		return Evidence{}
	}
	e := Evidence{
		File: file, FirstLine: cells[0].first, LastLine: cells[0].last,
		From: time.Duration(cells[0].index) * cellLength,
		To:   time.Duration(cells[len(cells)-1].index+1) * cellLength,
	}
	for _, c := range cells {
		e.Count += uint64(c.calls)
		e.FirstLine, e.LastLine = min(e.FirstLine, c.first), max(e.LastLine, c.last)
	}
	return e
}

// steady returns the steady calls per second of the baseline.
func (h *herdRecord) steady(baseline span) float64 {
	seconds := baseline.seconds()
	if seconds == 0 {
		return 0
	}
	cold := h.cause[targets.CauseCold].within(baseline)
	repeating := summed(h.file, h.total.within(baseline)).Count - summed(h.file, cold).Count
	return float64(repeating)/seconds + medianSecond(cold, baseline)
}

// medianSecond returns the median of the calls in the whole seconds of a
// span; 0 when it has none.
func medianSecond(cells []placed, s span) float64 {
	n := int64(s.seconds())
	if n == 0 {
		return 0
	}
	bins := make([]uint64, n)
	for _, c := range cells {
		if bin := (c.index - cellOf(s.from)) / secondCells; bin < n {
			bins[bin] += uint64(c.calls)
		}
	}
	slices.SortFunc(bins, cmp.Compare)
	return float64(bins[(n-1)/2]+bins[n/2]) / 2
}

func (h *herdRecord) report(out figures, s span, sc *scene) {
	if !sc.sawPulls && !sc.sawTruth {
		for _, name := range []string{"herd.factor", "herd.factor_100ms", "herd.peak_qps", "herd.total"} {
			out[name] = unknown("the run records neither truth nor pulls")
		}
		return
	}
	cells := h.total.within(s)
	second, instant := peak(h.file, cells, secondCells), peak(h.file, cells, instantCells)
	total := summed(h.file, cells)
	out["herd.total"] = count(total.Count).with(total)
	out["herd.peak_qps"] = count(second.Count).with(second)
	out["herd.factor"] = factor(second, sc.steady, sc)
	out["herd.factor_100ms"] = factor(instant, sc.steady*float64(instantCells)/float64(secondCells), sc)
	for cause, g := range h.cause {
		cells := g.within(s)
		second, total := peak(h.file, cells, secondCells), summed(h.file, cells)
		out[labelled("herd.peak_qps", byCause, string(cause))] = count(second.Count).with(second)
		out[labelled("herd.total", byCause, string(cause))] = count(total.Count).with(total)
	}
}

func factor(peak Evidence, steadyBin float64, sc *scene) figure {
	if !sc.hasBaseline {
		return unknown("there is no baseline: the first fault started with the load")
	}
	return figure{
		value:    float64(peak.Count) / max(1, steadyBin),
		detail:   fmt.Sprintf("%d calls in the busiest bin, %.4g in a steady one", peak.Count, steadyBin),
		evidence: peak,
	}
}
