package load

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func mustShare(t testing.TB, segment, sequence string) Share {
	t.Helper()
	s, err := ParseShare(segment, sequence)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// numbers lists the share's numbers below total.
func (s Share) numbers(total int64) string {
	var all []string
	for i := range s.Of(total) {
		all = append(all, fmt.Sprint(s.Number(uint64(i))))
	}
	return strings.Join(all, " ")
}

func TestShareDealsStripes(t *testing.T) {
	for _, c := range []struct{ segment, sequence, want string }{
		{"", "", "0 1 2 3 4 5 6 7 8 9"},
		{"0:1", "0,1", "0 1 2 3 4 5 6 7 8 9"},
		{"0:1/2", "", "0 2 4 6 8"},
		{"50%", "", "0 2 4 6 8"},
		{"1/2:1", "0,1/2,1", "1 3 5 7 9"},
		{"0:1/3", "0,1/3,2/3,1", "0 3 6 9"},
		{"1/3:2/3", "", "1 4 7"},
		{"2/3:1", "0,1/3,2/3,1", "2 5 8"},
		// of a quarter and the rest, the rest is larger and so comes first
		{"25%", "", "1 5 9"},
		{"0.25:1", "", "0 2 3 4 6 7 8"},
		{"0:1/2", "0,1/2,3/4,1", "0 2 4 6 8"},
		{"3/4:1", "0,1/2,3/4,1", "3 7"},
	} {
		if got := mustShare(t, c.segment, c.sequence).numbers(10); got != c.want {
			t.Errorf("%s of %s: got %s, want %s", c.segment, c.sequence, got, c.want)
		}
	}
}

func TestShareRefuses(t *testing.T) {
	for _, c := range []struct{ segment, sequence, want string }{
		{"1/2:1/4", "", "below"},
		{"1/2:1/2", "", "below"},
		{"0:2", "", "from 0 to 1"},
		{"-1/2:1", "", "from 0 to 1"},
		{"half", "", "such as 1/3"},
		{"1e-9", "", "such as 1/3"},
		{"1/0", "", "such as 1/3"},
		{"1/4:1/2:1", "", "such as 1/3"},
		{"0:1/3", "0,1/2,1", "two neighbours"},
		{"", "0,1/2,1", "two neighbours"},
		{"0:1/2", "0,1/2", "from 0 to 1"},
		{"0:1/2", "0,1/2,1/2,1", "rise"},
		{"0:1/1000003", "", "simpler"},
	} {
		if _, err := ParseShare(c.segment, c.sequence); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %q: got %v, want it to say %q", c.segment, c.sequence, err, c.want)
		}
	}
}

// sequences draws the sequence of a test and returns all its shares.
func sequences(t *rapid.T) []Share {
	parts := rapid.SliceOfN(rapid.Int64Range(1, 12), 1, 6).Draw(t, "parts")
	var shares []Share
	for i := range parts {
		shares = append(shares, newShare(parts, i))
	}
	return shares
}

func TestSharesPartitionEveryPrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shares := sequences(t)
		total := rapid.Int64Range(0, 200).Draw(t, "total")
		seen := map[uint64]bool{}
		for _, s := range shares {
			for i := range s.Of(total) {
				n := s.Number(uint64(i))
				if n >= uint64(total) || seen[n] {
					t.Fatalf("number %d of %d is dealt twice or too large", n, total)
				}
				seen[n] = true
			}
			if next := s.Number(uint64(s.Of(total))); next < uint64(total) {
				t.Fatalf("number %d below %d was not counted", next, total)
			}
		}
		if int64(len(seen)) != total {
			t.Fatalf("%d of %d numbers were dealt", len(seen), total)
		}
	})
}

func TestPartsOfAScenarioAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shares := sequences(t)
		vus := rapid.IntRange(1, 20).Draw(t, "vus")
		whole := SharedIterations{vus, int64(vus + rapid.IntRange(0, 50).Draw(t, "more")), time.Minute}
		var gotVUs int
		var iterations int64
		for _, share := range shares {
			p, some := Scenario{Executor: whole}.Part(share)
			e := p.Executor.(SharedIterations)
			if some != (e.Count > 0) || e.Iterations < int64(e.Count) {
				t.Fatalf("part %+v, some %v", e, some)
			}
			gotVUs += e.Count
			iterations += e.Iterations
		}
		if gotVUs != vus || iterations != whole.Iterations {
			t.Fatalf("parts have %d VUs and %d iterations, want %d and %d", gotVUs, iterations, vus, whole.Iterations)
		}
	})
}

func TestSharesPlayAllIterationsOnce(t *testing.T) {
	s := time.Second
	for name, c := range map[string]struct {
		executor Executor
		want     int
	}{
		"shared iterations":    {SharedIterations{5, 10, s}, 10},
		"fewer VUs than parts": {SharedIterations{1, 10, s}, 10},
		"arrivals":             {ConstantArrivalRate{40, s, s, 8, 8}, 40},
		"arrivals on a ramp":   {RampingArrivalRate{0, s, []Stage{{s, 40}}, 4, 4}, 20},
		"one VU ready for all": {ConstantArrivalRate{10, s, s, 1, 1}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := map[uint64]int{}
				for _, segment := range []string{"0:1/4", "1/4:1/2", "1/2:1"} {
					part, some := Scenario{Name: "s", Executor: c.executor}.Part(mustShare(t, segment, "0,1/4,1/2,1"))
					if !some {
						continue
					}
					played, _, _ := play(t, t.Context(), takes(0), part)
					for _, it := range played.started {
						all[it.InTest]++
					}
				}
				for n, times := range all {
					if times != 1 || n >= uint64(c.want) {
						t.Errorf("iteration %d was made %d times", n, times)
					}
				}
				if len(all) != c.want {
					t.Errorf("%d iterations were made, want %d", len(all), c.want)
				}
			})
		})
	}
}

func TestShareOfARampFollowsTheWhole(t *testing.T) {
	whole := rampVUs(0, []Stage{{4 * time.Second, 4}, {time.Second, 0}})
	got := mustShare(t, "1/2:1", "0,1/2,1").of(whole)
	want := []VUChange{{0, 0}, {2 * time.Second, 1}, {4 * time.Second, 2}, {4250 * time.Millisecond, 1}, {4750 * time.Millisecond, 0}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func FuzzParseShare(f *testing.F) {
	for _, seed := range [][2]string{{"0:1/4", "0,1/4,1"}, {"25%", ""}, {"0.3", "0,0.3,1"}, {"1/3:2/3", "0,1/3,2/3,1"}, {"::", ",,"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, segment, sequence string) {
		s, err := ParseShare(segment, sequence)
		if err != nil {
			return
		}
		if n := s.Of(100); n < 0 || n > 100 {
			t.Errorf("%d of 100", n)
		}
	})
}
