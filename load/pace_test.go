package load

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func dues(p Pacer, limit uint64) []time.Duration {
	var all []time.Duration
	for n := range limit {
		d, ok := p.Due(n)
		if !ok {
			break
		}
		all = append(all, d)
	}
	return all
}

func TestConstantPace(t *testing.T) {
	got := dues(ConstantPace{Rate: 3, Unit: time.Second, Duration: time.Second}, 100)
	want := []time.Duration{0, 333333333, 666666666}
	if !slices.Equal(got, want) {
		t.Errorf("due %v, want %v", got, want)
	}
}

func TestConstantPaceDoesNotDrift(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := ConstantPace{Rate: rapid.Int64Range(1, 1e6).Draw(t, "rate"),
			Unit: time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "unit")), Duration: math.MaxInt64}
		k := rapid.Uint64Range(0, 1000).Draw(t, "units")
		got, ok := p.Due(k * uint64(p.Rate))
		if want := time.Duration(k) * p.Unit; !ok || got != want {
			t.Fatalf("start %d of %d per %v is due at %v, %v, want %v", k*uint64(p.Rate), p.Rate, p.Unit, got, ok, want)
		}
		if _, ok := p.Due(math.MaxUint64); ok && p.Unit > time.Duration(p.Rate) {
			t.Fatal("a start beyond all time is due")
		}
	})
}

func TestRampPaceFollowsTheArea(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := RampPace{Start: rapid.Int64Range(0, 50).Draw(t, "start"), Unit: time.Second}
		total := 0.0
		from := p.Start
		for range rapid.IntRange(1, 4).Draw(t, "stages") {
			s := Stage{time.Duration(rapid.Int64Range(0, 5000).Draw(t, "ms")) * time.Millisecond, rapid.Int64Range(0, 50).Draw(t, "target")}
			p.Stages = append(p.Stages, s)
			total += float64(from+s.Target) / 2 * s.Duration.Seconds()
			from = s.Target
		}
		all := dues(p, 10_000)
		if math.Abs(float64(len(all))-total) > 1 {
			t.Fatalf("%d starts for an area of %v", len(all), total)
		}
		if !slices.IsSorted(all) {
			t.Fatalf("due in no order: %v", all)
		}
		for n, due := range all {
			if a := areaUntil(p, due); math.Abs(a-float64(n)) > 1e-4 {
				t.Fatalf("start %d is due at %v, where the area is %v", n, due, a)
			}
		}
	})
}

// areaUntil integrates the rate in small steps, as a second opinion.
func areaUntil(p RampPace, until time.Duration) float64 {
	area, from, at := 0.0, float64(p.Start), time.Duration(0)
	for _, s := range p.Stages {
		to := float64(s.Target)
		if until < at+s.Duration {
			share := float64(until-at) / float64(s.Duration)
			return area + (from+from+(to-from)*share)/2*(until-at).Seconds()
		}
		area += (from + to) / 2 * s.Duration.Seconds()
		at += s.Duration
		from = to
	}
	return area
}

func TestRampPacePauses(t *testing.T) {
	p := RampPace{Start: 20, Unit: time.Second, Stages: []Stage{
		{500 * time.Millisecond, 20}, {0, 0}, {500 * time.Millisecond, 0}, {0, 40}, {500 * time.Millisecond, 40}}}
	all := dues(p, 1000)
	if len(all) != 30 {
		t.Fatalf("%d starts, want 30", len(all))
	}
	if all[9] != 450*time.Millisecond || all[10] != time.Second {
		t.Errorf("around the pause: %v and %v, want 450ms and 1s", all[9], all[10])
	}
}

func TestRampVUs(t *testing.T) {
	s, ms := time.Second, time.Millisecond
	for _, c := range []struct {
		name   string
		start  int64
		stages []Stage
		want   []VUChange
	}{
		{"up and down", 1, []Stage{{s, 3}, {s, 1}}, []VUChange{{0, 1}, {500 * ms, 2}, {s, 3}, {1500 * ms, 2}, {2 * s, 1}}},
		{"a jump at the start replaces it", 0, []Stage{{0, 3}, {s, 3}}, []VUChange{{0, 3}}},
		{"flat", 2, []Stage{{s, 2}}, []VUChange{{0, 2}}},
		{"a jump down", 2, []Stage{{100 * ms, 2}, {0, 0}}, []VUChange{{0, 2}, {100 * ms, 0}}},
	} {
		if got := rampVUs(c.start, c.stages); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestRampVUsProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.Int64Range(0, 30).Draw(t, "start")
		var stages []Stage
		for range rapid.IntRange(1, 5).Draw(t, "stages") {
			stages = append(stages, Stage{time.Duration(rapid.Int64Range(0, 100).Draw(t, "d")), rapid.Int64Range(0, 30).Draw(t, "target")})
		}
		all := rampVUs(start, stages)
		for i := 1; i < len(all); i++ {
			if all[i].At <= all[i-1].At || all[i].VUs == all[i-1].VUs {
				t.Fatalf("change %d says nothing new: %v", i, all)
			}
		}
		if last := all[len(all)-1]; last.VUs != int(stages[len(stages)-1].Target) || last.At > stagesDuration(stages) {
			t.Fatalf("the last change is %v, want the last target within %v", last, stagesDuration(stages))
		}
	})
}
