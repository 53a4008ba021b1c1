package experiment

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metachaos/metachaos/targets"
)

func TestParseGuard(t *testing.T) {
	g, err := parseGuard(" availability.success_rate <= 0.05 for 30s ")
	if err != nil || g.signal != "availability.success_rate" || g.operator != "<=" || g.threshold != 0.05 || g.seconds != 30 {
		t.Errorf("got %+v, %v", g, err)
	}
	for text, want := range map[string]string{
		"availability.success_rate<0.05":          "want METRIC OPERATOR NUMBER for DURATION",
		"availability.succes_rate<0.05 for 3s":    `did you mean "availability.success_rate"?`,
		"availability.success_rate<0.0.5 for 3s":  "bad number",
		"availability.success_rate<0.05 for 3":    "bad duration",
		"availability.success_rate<0.05 for 10ms": "want 1s to 118s",
		"availability.success_rate<0.05 for 1h":   "want 1s to 118s",
		"availability.success_rate~0.05 for 3s":   "bad condition",
		"":                                        "bad condition",
	} {
		if _, err := parseGuard(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want it to hold %q", text, err, want)
		}
	}
}

func TestGuardHolds(t *testing.T) {
	for _, c := range []struct {
		operator string
		below    bool
		at       bool
		above    bool
	}{
		{"<", true, false, false}, {"<=", true, true, false}, {">", false, false, true},
		{">=", false, true, true}, {"==", false, true, false}, {"!=", true, false, true},
	} {
		g := guard{operator: c.operator, threshold: 5}
		if g.holds(4) != c.below || g.holds(5) != c.at || g.holds(6) != c.above {
			t.Errorf("%s: %v %v %v", c.operator, g.holds(4), g.holds(5), g.holds(6))
		}
	}
}

// operations of each second from 1 on; the guard asks for two seconds below 3
// operations done.
func TestGuardTripsOnlyWhenEverySecondHolds(t *testing.T) {
	for _, c := range []struct {
		name    string
		perS    []int
		tripsAt time.Duration // 0: never
	}{
		{"two in a row", []int{5, 1, 1, 5}, 4 * time.Second},
		{"one good second between", []int{1, 5, 1, 5, 1, 5}, 0},
		{"silence counts as no goodput", []int{5, 5, 0, 0}, 5 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				base := targets.NewBase()
				l := &live{base: base}
				g, err := parseGuard("availability.goodput<3 for 2s")
				if err != nil {
					t.Fatal(err)
				}
				var tripped time.Duration
				done := make(chan struct{})
				ctx := t.Context()
				go func() {
					defer close(done)
					watchGuards(ctx, []guard{g}, l, func(guard) { tripped = base.Now() })
				}()
				time.Sleep(time.Second)
				for _, n := range c.perS {
					for range n {
						l.event(targets.Event{Verb: targets.EventRead, Outcome: targets.Done, End: base.Now()})
					}
					time.Sleep(time.Second)
				}
				synctest.Wait()
				if c.tripsAt == 0 {
					if tripped != 0 {
						t.Errorf("tripped at %s", tripped)
					}
					return
				}
				<-done
				if tripped != c.tripsAt {
					t.Errorf("tripped at %s, want %s", tripped, c.tripsAt)
				}
			})
		})
	}
}

func TestLiveCountsWhatMatters(t *testing.T) {
	var s liveSlot
	for _, e := range []targets.Event{
		{Verb: targets.EventRead, Outcome: targets.Done},
		{Verb: targets.EventWrite, Outcome: targets.Unknown, Code: targets.CodeTimeout},
		{Verb: targets.EventScan, Outcome: targets.Done, Duplicates: 3},
		{Verb: targets.EventRead, Outcome: targets.Done, Hops: []targets.Hop{{Code: targets.CodeStaleEpoch}, {}}},
		{Verb: targets.EventRead, Outcome: targets.Refused, Code: targets.CodeRetriesExhausted},
		{Verb: targets.EventPull, Outcome: targets.Done},
		{Verb: targets.EventPull, Outcome: targets.Done, Shared: true}, // no call of its own
		{Verb: targets.EventPush, Outcome: targets.Done},
	} {
		s.add(e)
	}
	want := liveSlot{operations: 5, done: 3, refusals: 2, pulls: 1, timeouts: 1, duplicates: 3}
	if s != want {
		t.Errorf("counted %+v, want %+v", s, want)
	}
}

func TestSeedsDifferByActorAndRun(t *testing.T) {
	seen := map[uint64]string{}
	for _, seed := range []uint64{1, 2} {
		for _, name := range []string{"freeze", "bounce", ""} {
			s := deriveSeed(seed, name)
			if other, ok := seen[s]; ok {
				t.Errorf("seed %d of %q is also that of %s", seed, name, other)
			}
			seen[s] = name
			if deriveSeed(seed, name) != s {
				t.Error("not repeatable")
			}
		}
	}
}

func TestMeasureProcessSeesThisProcess(t *testing.T) {
	h := measureHost(time.Second, nil)
	if len(h.Processes) != 1 {
		t.Fatalf("processes %+v, want this one alone", h.Processes)
	}
	p := h.Processes[0]
	if p.Node != "metachaos" || p.RSSBytes == 0 || p.Threads < 2 || p.ContextSwitches == 0 || p.State == "" || h.MemoryBytes == 0 {
		t.Errorf("measured %+v on %+v", p, h)
	}
	if _, ok := measureProcess(targets.Process{PID: 1 << 30}); ok {
		t.Error("a process that is not there was measured")
	}
}
