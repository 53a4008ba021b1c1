package stats

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func stat(t interface{ Fatalf(string, ...any) }, s Sink, name string) float64 {
	st, err := ParseStat(name)
	if err != nil {
		t.Fatalf("parse %s: %v", name, err)
	}
	v, ok := s.Stat(st, 2*time.Second)
	if !ok {
		t.Fatalf("%T has no %s", s, name)
	}
	return v
}

func TestSinks(t *testing.T) {
	fill := func(s Sink, values ...float64) Sink {
		for i, v := range values {
			s.Add(time.Duration(i), v)
		}
		return s
	}
	for _, c := range []struct {
		name string
		sink Sink
		want map[string]float64
	}{
		{"counter", fill(&Counter{}, 1.5, 2, -1, math.NaN()), map[string]float64{"count": 2.5, "rate": 1.25}},
		{"empty counter", &Counter{}, map[string]float64{"count": 0, "rate": 0}},
		{"gauge", fill(&Gauge{}, 4, -1, 8, 3, math.NaN()), map[string]float64{"value": 3, "min": -1, "max": 8}},
		{"rate", fill(&Rate{}, 1, 0, 1, 0, 2, -1), map[string]float64{"rate": 4.0 / 6, "passes": 4, "fails": 2}},
		{"empty rate", &Rate{}, map[string]float64{"rate": 0}},
		{"trend", fill(&Trend{}, 40, 10, 30, 20), map[string]float64{
			"avg": 25, "min": 10, "med": 25, "max": 40, "p(90)": 37, "p(95)": 38.5, "p(0)": 10, "p(100)": 40, "count": 4}},
		{"empty trend", &Trend{}, map[string]float64{"avg": 0, "min": 0, "p(95)": 0}},
	} {
		for name, want := range c.want {
			if got := stat(t, c.sink, name); math.Abs(got-want) > 1e-12 {
				t.Errorf("%s: %s = %v, want %v", c.name, name, got, want)
			}
		}
	}
}

func TestSinksRefuseStatsOfOtherKinds(t *testing.T) {
	for _, c := range []struct {
		sink Sink
		stat string
	}{{&Counter{}, "avg"}, {&Gauge{}, "rate"}, {&Rate{}, "count"}, {&Trend{}, "value"}, {&Trend{}, "rate"}} {
		st, err := ParseStat(c.stat)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := c.sink.Stat(st, time.Second); ok {
			t.Errorf("%T answers %s", c.sink, c.stat)
		}
	}
}

func TestGaugeKeepsTheLatestMeasured(t *testing.T) {
	var g Gauge
	g.Add(2, 20)
	g.Add(1, 10) // a worker that was slow to report
	if got := stat(t, &g, "value"); got != 20 {
		t.Errorf("value = %v, want 20", got)
	}
}

func TestParseStat(t *testing.T) {
	for _, s := range []string{"avg", "count", "p(0)", "p(99.99)", "p(100)", "rate"} {
		st, err := ParseStat(s)
		if err != nil || st.String() != s {
			t.Errorf("ParseStat(%q) = %v, %v", s, st, err)
		}
	}
	for _, s := range []string{"", "average", "p", "p()", "p(101)", "p(-1)", "p(NaN)", "p(x)", "p(5", "5)", "P(5)"} {
		if st, err := ParseStat(s); err == nil {
			t.Errorf("ParseStat(%q) = %v, want an error", s, st)
		}
	}
}

// genValues makes enough values, often, that a Trend leaves its exact form.
func genValues() *rapid.Generator[[]float64] {
	return rapid.Custom(func(t *rapid.T) []float64 {
		n := rapid.SampledFrom([]int{0, 1, 7, ExactValues, ExactValues + 1, 3 * ExactValues}).Draw(t, "n")
		size := rapid.SampledFrom([]float64{1e-3, 1, 1e9}).Draw(t, "size")
		seed := rapid.Uint64().Draw(t, "seed")
		values := make([]float64, n)
		for i := range values {
			seed = seed*6364136223846793005 + 1442695040888963407
			u := float64(seed>>11) / (1 << 53)
			values[i] = size * math.Exp(10*u-5)
			switch seed % 16 {
			case 0, 1, 2:
				values[i] = -values[i]
			case 3:
				values[i] = 0
			}
		}
		return values
	})
}

func TestTrendIsWithinItsError(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := genValues().Draw(t, "a"), genValues().Draw(t, "b")
		all := slices.Concat(a, b)
		if len(all) == 0 {
			return
		}
		make2 := func() (x, y Trend) {
			for _, v := range a {
				x.Add(0, v)
			}
			for _, v := range b {
				y.Add(0, v)
			}
			return
		}
		ab, y := make2()
		ab.Merge(&y)
		x, ba := make2()
		ba.Merge(&x)
		slices.Sort(all)
		p := rapid.Float64Range(0, 100).Draw(t, "p")
		st := Stat{Kind: Percentile, Percent: p}
		v1, _ := ab.Stat(st, 0)
		v2, _ := ba.Stat(st, 0)
		if v1 != v2 {
			t.Fatalf("p(%v) depends on the order of merging: %v and %v", p, v1, v2)
		}
		rank := p / 100 * float64(len(all)-1)
		lo, hi := all[int(math.Floor(rank))], all[int(math.Ceil(rank))]
		frac := rank - math.Floor(rank)
		want := lo + (hi-lo)*frac
		slack := RelativeError*((1-frac)*math.Abs(lo)+frac*math.Abs(hi)) + 1e-12*math.Abs(want)
		if len(all) <= ExactValues {
			slack = 1e-12 * math.Abs(want)
		}
		if math.Abs(v1-want) > slack {
			t.Fatalf("p(%v) of %d values = %v, want %v", p, len(all), v1, want)
		}
		if got := stat(t, &ab, "count"); got != float64(len(all)) {
			t.Fatalf("count = %v, want %d", got, len(all))
		}
		if got := stat(t, &ab, "max"); got != all[len(all)-1] {
			t.Fatalf("max = %v, want %v", got, all[len(all)-1])
		}
	})
}

func TestMergeEqualsOneSink(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOf(rapid.IntRange(-3, 3)).Draw(t, "values")
		cut := rapid.IntRange(0, len(values)).Draw(t, "cut")
		var c1, c2, c Counter
		var g1, g2, g Gauge
		var r1, r2, r Rate
		for i, n := range values {
			at, v := time.Duration(i), float64(n)
			c.Add(at, v)
			g.Add(at, v)
			r.Add(at, v)
			if i < cut {
				c1.Add(at, v)
				g1.Add(at, v)
				r1.Add(at, v)
			} else {
				c2.Add(at, v)
				g2.Add(at, v)
				r2.Add(at, v)
			}
		}
		c2.Merge(&c1)
		g2.Merge(&g1)
		r2.Merge(&r1)
		if c2 != c || g2 != g || r2 != r {
			t.Fatalf("merged %v %v %v, want %v %v %v", c2, g2, r2, c, g, r)
		}
	})
}

func TestTrendMemoryIsBounded(t *testing.T) {
	var tr Trend
	for i := range 2_000_000 {
		tr.Add(0, 1+float64(i%100_000)/10)
	}
	if tr.exact != nil {
		t.Error("the exact values are still kept")
	}
	n := 0
	tr.bins.positive.ForEach(func(int, float64) bool { n++; return false })
	if n > 1000 {
		t.Errorf("%d bins for values from 1 to 10,000", n)
	}
}

func TestTrendTakesTheEnds(t *testing.T) {
	var tr Trend
	for range 2 * ExactValues {
		tr.Add(0, math.Inf(1))
		tr.Add(0, -math.MaxFloat64)
		tr.Add(0, math.SmallestNonzeroFloat64)
	}
	if got := stat(t, &tr, "med"); got != 0 && got != math.SmallestNonzeroFloat64 {
		t.Errorf("med = %v, want the middle value", got)
	}
}

func BenchmarkTrendAdd(b *testing.B) {
	var tr Trend
	for i := 0; b.Loop(); i++ {
		tr.Add(0, float64(i%5000)+0.5)
	}
}
