package analysis

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/metachaos/metachaos/targets"
)

// fleet draws the pulls of n clients with a TTL of 60 s that are synchronized
// at the offset start, each with TTLs of ttl·(1+u), u uniform in [low, high),
// after a minute of steady pulls.
func fleet(n, waves int, low, high float64, start time.Duration) *herdRecord {
	const ttl = 60.0
	random := rand.New(rand.NewPCG(1, 2))
	h := newHerdRecord("truth.ndjson")
	line := 0
	call := func(at float64) {
		line++
		h.call(line, time.Duration(at*float64(time.Second)), targets.CauseTTL)
	}
	rate := float64(n) / (ttl * (1 + (low+high)/2))
	for i := range int(rate * start.Seconds()) {
		call(float64(i) / rate)
	}
	for range n {
		at := start.Seconds()
		for range waves + 4 { // later waves run into the one that is judged
			at += ttl * (1 + low + (high-low)*random.Float64())
			call(at)
		}
	}
	return h
}

// TestHerdFactorsOfFleets checks the numbers of SEMANTICS §9: peak over steady
// for 100,000 clients with a TTL of 60 s.
func TestHerdFactorsOfFleets(t *testing.T) {
	const n, start = 100_000, 60 * time.Second
	for _, c := range []struct {
		name      string
		low, high float64
		want      map[int]float64 // by wave
	}{
		{"no jitter", 0, 0, map[int]float64{1: 60, 3: 60, 10: 60}},
		// Wave 10 spreads with a deviation of 6·√(10/3) s: N/(10.95·√2π) is
		// 2.19 times steady, which the table cuts to 2.1.
		{"±10 %", -0.1, 0.1, map[int]float64{1: 5.1, 3: 3.8, 10: 2.19}},
		{"±30 %", -0.3, 0.3, map[int]float64{1: 1.7, 3: 1.3, 10: 1.04}},
		{"one-sided 10 %", -0.1, 0, map[int]float64{1: 9.6, 3: 7.0, 10: 4.1}},
	} {
		h := fleet(n, 10, c.low, c.high, start)
		steady := h.steady(span{window: Window{Kind: Baseline}, to: start})
		period := 60 * (1 + (c.low+c.high)/2)
		for wave, want := range c.want {
			at := func(w float64) time.Duration { return start + time.Duration(w*period*float64(time.Second)) }
			got := figures{}
			h.report(got, span{from: at(float64(wave) - 0.5), to: at(float64(wave) + 0.5)},
				&scene{hasBaseline: true, sawTruth: true, steady: steady})
			if f := got["herd.factor"].value; math.Abs(f-want) > 0.05*want {
				t.Errorf("%s, wave %d: herd.factor = %.3f, want %.2f within 5 %%", c.name, wave, f, want)
			}
		}
	}
}

func TestHerdOfAHandMadeRecord(t *testing.T) {
	h := newHerdRecord("truth.ndjson")
	ms := time.Millisecond
	// The baseline [0 s, 4 s): 2 ttl calls a second, and a cold start of 100 in
	// its first second, whose median second is 0. Steady is 8/4 + 0 = 2.
	line := 0
	call := func(at time.Duration, cause targets.Cause) { line++; h.call(line, at, cause) }
	for range 100 {
		call(50*ms, targets.CauseCold)
	}
	for i := range 8 {
		call(time.Duration(i)*500*ms, targets.CauseTTL)
	}
	// The herd: 30 calls across the edge of a second, within 100 ms, which bins
	// that stand still would cut in halves, and a node's refresh, which is not
	// of a client.
	for range 15 {
		call(4950*ms, targets.CauseMismatch)
		call(5010*ms, targets.CauseMismatch)
	}
	call(5000*ms, targets.CauseNode)
	call(6500*ms, targets.CauseTTL) // apart from the herd

	baseline := span{window: Window{Kind: Baseline}, to: 4 * time.Second}
	sc := &scene{hasBaseline: true, sawTruth: true, steady: h.steady(baseline)}
	if sc.steady != 2 {
		t.Fatalf("steady = %v, want 2", sc.steady)
	}
	got := figures{}
	h.report(got, span{from: 4 * time.Second, to: 8 * time.Second}, sc)
	for name, want := range map[string]float64{
		"herd.total": 31, "herd.peak_qps": 30,
		"herd.factor":       15, // 30 / 2
		"herd.factor_100ms": 30, // 30 / max(1, 0.2)
		labelled("herd.total", byCause, "mismatch"): 30,
		labelled("herd.peak_qps", byCause, "ttl"):   1,
	} {
		if f := got[name]; f.value != want || !f.known() {
			t.Errorf("%s = %+v, want %v", name, f, want)
		}
	}
	e := got["herd.factor"].evidence
	if want := (Evidence{"truth.ndjson", 109, 138, 4950 * ms, 5020 * ms, 30}); e != want {
		t.Errorf("evidence = %+v, want %+v", e, want)
	}
}

func TestHerdWithoutGround(t *testing.T) {
	h := newHerdRecord("truth.ndjson")
	h.call(1, time.Hour*1e6, targets.CauseTTL) // a damaged offset must not cost memory
	got := figures{}
	h.report(got, span{open: true}, &scene{sawTruth: true})
	if got["herd.factor"].known() || got["herd.total"].value != 1 {
		t.Errorf("without a baseline: %+v", got)
	}
	h.report(got, span{open: true}, &scene{hasBaseline: true})
	if got["herd.total"].known() {
		t.Error("a run that records no pulls has a total of pulls")
	}
}
