package analysis

import (
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/metachaos/metachaos/targets"
)

var route = targets.Object{Kind: targets.KindRoute, ID: "r1"}

// at is a test's offset in milliseconds.
func at(ms int) time.Duration { return time.Duration(ms) * time.Millisecond }

func read(start, end int, shard string) targets.Event {
	return targets.Event{Start: at(start), End: at(end), Verb: targets.EventRead, Object: route, Outcome: targets.Done, Shard: shard, HopCount: 1}
}

func feed(tally eventTally, events ...targets.Event) figures {
	for i := range events {
		tally.event(i+1, &events[i])
	}
	out := figures{}
	tally.report(out, &scene{hasBaseline: true, goodput: 10, sawPulls: true, sawTruth: true})
	return out
}

func expectFigures(t *testing.T, got figures, want map[string]float64) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		f, ok := got[name]
		if !ok || !f.known() || math.Abs(f.value-want[name]) > 1e-12 && f.value != want[name] {
			t.Errorf("%s = %+v (there: %v), want %v", name, f, ok, want[name])
		}
	}
}

func TestRedirects(t *testing.T) {
	shardOf := map[targets.NodeID]string{"a": "s1", "a2": "s1", "b": "s2"}
	stale := func(node targets.NodeID, epoch targets.Epoch, owner string) targets.Hop {
		return targets.Hop{Node: node, Epoch: epoch, Code: targets.CodeStaleEpoch, Owner: owner}
	}
	served := func(node targets.NodeID, epoch targets.Epoch) targets.Hop {
		return targets.Hop{Node: node, Epoch: epoch}
	}
	unknownThere := targets.Hop{Node: "a", Epoch: 1, Code: targets.CodeUnknownOwnership}
	for _, c := range []struct {
		name      string
		hops      []targets.Hop
		redirects float64
		loops     float64
	}{
		{"one hop", nil, 0, 0},
		{"a redirect", []targets.Hop{stale("a", 1, "s2"), served("b", 2)}, 1, 0},
		// The node names its own shard: the epoch is stale, the place is right.
		{"same owner", []targets.Hop{stale("a", 1, "s1"), served("a", 2)}, 0, 0},
		{"a retry is no redirect", []targets.Hop{unknownThere, unknownThere, served("a", 1)}, 0, 0},
		{"A→B→A at one epoch", []targets.Hop{stale("a", 2, "s2"), stale("b", 2, "s1"), served("a", 2)}, 2, 1},
		// It moved there and back: each hop follows a newer epoch.
		{"A→B→A with newer epochs", []targets.Hop{stale("a", 1, "s2"), stale("b", 2, "s1"), served("a", 3)}, 2, 0},
		{"the last refusal is not followed", []targets.Hop{stale("a", 1, "s2"), stale("b", 1, "s1")}, 1, 0},
		{"patience is no loop", []targets.Hop{stale("a", 1, "s2"), stale("a", 1, "s2"), served("b", 1)}, 2, 0},
	} {
		e := read(0, 1, "s1")
		e.Hops = c.hops
		e.HopCount = max(1, len(c.hops))
		t.Run(c.name, func(t *testing.T) {
			expectFigures(t, feed(newRedirectTally(shardOf), e), map[string]float64{"redirects.per_op": c.redirects, "redirects.loops": c.loops})
		})
	}
}

func TestHopsPercentile(t *testing.T) {
	// 100 operations: 98 of one request and 2 of 5. The 99th of them took 5.
	var events []targets.Event
	for i := range 100 {
		e := read(i, i, "s1")
		if i >= 98 {
			e.HopCount = 5 // a client library that hides its hops
		}
		events = append(events, e)
	}
	scan := targets.Event{Verb: targets.EventScan, Outcome: targets.Done, HopCount: 50} // asks every shard by design
	got := feed(newRedirectTally(nil), append(events, scan)...)
	expectFigures(t, got, map[string]float64{"redirects.hops_p99": 5, "redirects.per_op": 0.08, "redirects.loops": 0})
	if got["redirects.loops"].doubt == "" {
		t.Error("hops that are hidden leave no doubt whether they loop")
	}
}

func TestRefusals(t *testing.T) {
	single := read(0, 1, "")
	single.Outcome, single.Code = targets.Refused, targets.CodeUnknownOwnership
	timeout := read(1, 2, "")
	timeout.Outcome, timeout.Code = targets.Unknown, targets.CodeTimeout
	several := read(2, 3, "s2")
	several.Hops = []targets.Hop{{Node: "a", Code: targets.CodeStaleEpoch}, {Node: "a", Code: targets.CodeTimeout}, {Node: "b"}}
	pull := targets.Event{Verb: targets.EventPull, Outcome: targets.Refused, Code: targets.CodeControlDown}
	// 5 requests of operations: 1 + 1 + 3, of which 2 were refused.
	expectFigures(t, feed(newRefusalTally(), single, timeout, several, pull), map[string]float64{
		"refusals.rate": 0.4,
		labelled("refusals.rate", byCode, "STALE_EPOCH"):       0.2,
		labelled("refusals.rate", byCode, "UNKNOWN_OWNERSHIP"): 0.2,
	})
}

func TestDuplicates(t *testing.T) {
	scan := func(documents, again, missing int, o targets.Outcome) targets.Event {
		return targets.Event{Verb: targets.EventScan, Outcome: o, Documents: documents, Duplicates: again, Missing: missing}
	}
	got := feed(&duplicateTally{},
		scan(10, 0, 0, targets.Done),
		scan(10, 2, 1, targets.Done),   // 8 different documents of 9
		scan(0, 0, 9, targets.Refused)) // lacks documents for another reason
	expectFigures(t, got, map[string]float64{
		"duplicates.rate":         0.1,        // 2 of 20
		"duplicates.missing_rate": 1.0 / 19.0, // 1 of 20 − 2 + 1
	})
	if e := got["duplicates.rate"].evidence; e.FirstLine != 2 || e.LastLine != 2 || e.Count != 1 {
		t.Errorf("evidence = %+v, want line 2", e)
	}
	if f := feed(&duplicateTally{}, read(0, 1, "s1"))["duplicates.rate"]; f.known() {
		t.Errorf("a window without scans has the rate %+v", f)
	}
}

func TestStaleness(t *testing.T) {
	h := history{}
	for _, c := range []commit{{at(3000), 3, "s3"}, {at(1000), 1, "s1"}, {at(2000), 2, "s2"}} { // out of order
		h.add(&targets.Truth{At: c.at, Kind: targets.TruthCommit, Object: route, Epoch: c.epoch, Owner: c.owner})
	}
	h.sort()
	available := func(e targets.Event) targets.Event { e.Served = 0; return e }
	served := func(e targets.Event, epoch targets.Epoch) targets.Event { e.Served = epoch; return e }
	for _, c := range []struct {
		name string
		e    targets.Event
		want judgement
	}{
		{"owner throughout", read(1100, 1200, "s1"), judgement{judged: true}},
		{"owner at its start only", read(1900, 2100, "s1"), judgement{judged: true}},
		{"owner until its start", available(read(2000, 2100, "s1")), judgement{true, true, 1, 0}},
		{"owner at its end only", read(1900, 2000, "s2"), judgement{judged: true}},
		{"owner in its middle only", read(1900, 3100, "s2"), judgement{judged: true}},
		// s1 lost the object at 2000 and serves at 2500 what epoch 1 says.
		{"former owner", served(read(2500, 2600, "s1"), 1), judgement{true, true, 1, at(500)}},
		{"former owner that checks nothing", available(read(3500, 3600, "s1")), judgement{true, true, 2, at(1500)}},
		{"never an owner", available(read(1500, 1600, "s9")), judgement{true, true, 1, at(500)}},
		{"future owner", available(read(1500, 1600, "s3")), judgement{true, true, 1, at(500)}},
		{"before the truth", read(100, 200, "s1"), judgement{}},
		{"the truth begins in its middle, elsewhere", read(900, 1100, "s2"), judgement{}},
		{"the truth begins in its middle, here", read(900, 1100, "s1"), judgement{judged: true}},
		{"object that the truth does not know", targets.Event{Object: targets.Object{Kind: "route", ID: "other"}}, judgement{}},
	} {
		if got := h.judge(&c.e); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}

	write := served(read(2500, 2600, "s1"), 1)
	write.Verb = targets.EventWrite
	refused := write
	refused.Outcome = targets.Refused
	got := feed(&stalenessTally{history: h}, read(1100, 1200, "s1"), served(read(2500, 2600, "s1"), 1), write, refused)
	expectFigures(t, got, map[string]float64{
		"staleness.rate": 0.5, "staleness.max_lag_epochs": 1, "staleness.max_age": 0.5, "safety.stale_owner_writes": 1,
	})
	if e := got["safety.stale_owner_writes"].evidence; e != (Evidence{"events.ndjson", 3, 3, at(2500), at(2600), 1}) {
		t.Errorf("evidence = %+v, want line 3", e)
	}
	if f := feed(&stalenessTally{history: h}, read(1100, 1200, "s1"), read(1, 2, "s1"))["staleness.rate"]; f.doubt == "" || f.value != 0 {
		t.Errorf("a read that cannot be judged leaves no doubt: %+v", f)
	}
}

func TestAvailability(t *testing.T) {
	timeout := read(100, 200, "")
	timeout.Outcome, timeout.Code = targets.Unknown, targets.CodeTimeout
	refused := read(100, 200, "")
	refused.Outcome, refused.Code = targets.Refused, targets.CodeRetriesExhausted
	pull := targets.Event{Verb: targets.EventPull, Outcome: targets.Done}
	s := span{window: Window{Kind: Whole}, to: 2 * time.Second}
	expectFigures(t, feed(newAvailabilityTally(s), read(0, 1, "s1"), read(0, 1, "s1"), timeout, refused, pull), map[string]float64{
		"availability.goodput": 1, "availability.success_rate": 0.5, "availability.timeouts": 1,
	})
}

// An interrupted run may end milliseconds after a fault was taken back: that no
// operation ended in so short a window is no loss of goodput.
func TestGoodputIsNotJudgedOverAMoment(t *testing.T) {
	for length, known := range map[time.Duration]bool{6500 * time.Microsecond: false, 999 * time.Millisecond: false, time.Second: true} {
		after := span{window: Window{After, "f"}, to: length}
		if f := feed(newAvailabilityTally(after))["availability.goodput"]; f.known() != known {
			t.Errorf("over %v: %+v, want a value: %v", length, f, known)
		}
	}
}

func TestRecovery(t *testing.T) {
	after := span{window: Window{After, "f"}, from: at(5000), to: at(9500), open: true}
	perSecond := func(done ...int) []targets.Event {
		var out []targets.Event
		for second, n := range done {
			for i := range n {
				end := 5000 + 1000*second + i
				out = append(out, read(end, end, "s1"))
			}
		}
		return out
	}
	for _, c := range []struct {
		done []int // by second after the fault; the baseline has 10
		want float64
	}{
		{[]int{9, 9, 9, 9}, 0}, // 0.9 of the baseline is recovered
		{[]int{0, 8, 9, 10}, 2},
		{[]int{0, 8, 8, 8}, math.Inf(1)},
		{[]int{0, 0, 0, 0, 99}, math.Inf(1)}, // the half second at the end is no second
	} {
		expectFigures(t, feed(newAvailabilityTally(after), perSecond(c.done...)...), map[string]float64{"availability.recovery_time": c.want})
	}
	longest := longestRecovery([]figure{{value: 2}, unknown("too short"), {value: 7}, {value: 3}})
	if longest.value != 7 || longest.doubt != "too short" {
		t.Errorf("longest = %+v", longest)
	}
	if f := longestRecovery([]figure{unknown("too short")}); f.missing != "too short" {
		t.Errorf("no recovery known: %+v", f)
	}
}

func TestCacheAndPulls(t *testing.T) {
	lookup := func(c targets.CacheResult) targets.Event {
		e := read(0, 1, "s1")
		e.Cache = c
		return e
	}
	pull := func(cause targets.Cause, shared bool) targets.Event {
		return targets.Event{Verb: targets.EventPull, Cause: cause, Shared: shared}
	}
	expectFigures(t, feed(newCacheTally(),
		lookup(targets.CacheHit), lookup(targets.CacheHit), lookup(targets.CacheHit), lookup(targets.CacheExpired), lookup(targets.CacheNone),
		pull(targets.CauseTTL, false), pull(targets.CauseTTL, true), pull(targets.CauseGap, false)), map[string]float64{
		"cache.hit_rate": 0.75, "pulls.total": 2, labelled("pulls.total", byCause, "ttl"): 1,
	})
}

func TestPushes(t *testing.T) {
	p := &pushTally{}
	for i, r := range []targets.Truth{{Kind: targets.TruthPush}, {Kind: targets.TruthPush, Lost: true}, {Kind: targets.TruthGrant}} {
		p.truth(i+1, &r)
	}
	out := figures{}
	p.report(out, &scene{sawTruth: true})
	expectFigures(t, out, map[string]float64{"push.sent": 2, "push.lost": 1})
}
