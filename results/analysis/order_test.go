package analysis

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/metachaos/metachaos/results"
	"github.com/metachaos/metachaos/targets"
)

func TestJudgeIsDeterministic(t *testing.T) {
	r := frozen(expect("staleness.rate", "whole", "value==0"))
	r.manifest.Thresholds = map[string][]results.Threshold{"wait": {{Expression: "max<50"}}, "absent": {{Expression: "count>0"}}}
	r.samples = 100
	dir := r.folder(t)
	first, err := json.Marshal(judgeFolder(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		again, err := json.Marshal(judgeFolder(t, dir))
		if err != nil || !bytes.Equal(first, again) {
			t.Fatalf("the same folder gave\n%s, then\n%s, %v", first, again, err)
		}
	}
}

// TestOrderOfRecordsDoesNotMatter shuffles the records, which concurrency
// leaves near their order only, and expects the same figures.
func TestOrderOfRecordsDoesNotMatter(t *testing.T) {
	r := frozen(expect("availability.goodput", "during freeze", "ratio_to_baseline>0.4"))
	figures := func(r record) string {
		v := judgeFolder(t, r.folder(t))
		for i := range v.Findings {
			v.Findings[i].Evidence.FirstLine, v.Findings[i].Evidence.LastLine = 0, 0
		}
		for i := range v.Faults {
			v.Faults[i].Line = 0
		}
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	want := figures(r)
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		s := r
		s.events, s.truth, s.injections = slices.Clone(r.events), slices.Clone(r.truth), slices.Clone(r.injections)
		random.Shuffle(len(s.events), func(i, j int) { s.events[i], s.events[j] = s.events[j], s.events[i] })
		random.Shuffle(len(s.truth), func(i, j int) { s.truth[i], s.truth[j] = s.truth[j], s.truth[i] })
		random.Shuffle(len(s.injections), func(i, j int) { s.injections[i], s.injections[j] = s.injections[j], s.injections[i] })
		if got := figures(s); got != want {
			t.Fatalf("seed %d: shuffled records gave\n%s, want\n%s", seed, got, want)
		}
	}
}

// TestRandomRecordsAreJudged feeds histories of any shape: the verdict has a
// JSON form, and does not depend on the order of the records.
func TestRandomRecordsAreJudged(t *testing.T) {
	event := rapid.Custom(func(rt *rapid.T) targets.Event {
		start := rapid.IntRange(-1000, 12_000).Draw(rt, "start")
		e := read(start, start+rapid.IntRange(0, 5000).Draw(rt, "length"), rapid.SampledFrom([]string{"", "s1", "s2"}).Draw(rt, "shard"))
		e.Verb = rapid.SampledFrom([]targets.EventVerb{"read", "write", "scan", "pull", "push"}).Draw(rt, "verb")
		e.Outcome = rapid.SampledFrom([]targets.Outcome{"done", "refused", "unknown"}).Draw(rt, "outcome")
		e.Documents = rapid.IntRange(-1, 5).Draw(rt, "documents")
		e.Duplicates = rapid.IntRange(-1, 5).Draw(rt, "duplicates")
		e.HopCount = rapid.IntRange(-1, 3).Draw(rt, "hops")
		return e
	})
	commits := rapid.Custom(func(rt *rapid.T) targets.Truth {
		return targets.Truth{At: at(rapid.IntRange(-1000, 12_000).Draw(rt, "at")), Object: route,
			Kind:  rapid.SampledFrom([]targets.TruthKind{"commit", "grant", "push"}).Draw(rt, "kind"),
			Epoch: targets.Epoch(rapid.IntRange(0, 5).Draw(rt, "epoch")), Owner: rapid.SampledFrom([]string{"s1", "s2"}).Draw(rt, "owner")}
	})
	rapid.Check(t, func(rt *rapid.T) {
		a, b := &analysis{history: history{}}, &analysis{history: history{}}
		events, truth := rapid.SliceOfN(event, 0, 40).Draw(rt, "events"), rapid.SliceOfN(commits, 0, 10).Draw(rt, "truth")
		for _, e := range truth {
			a.history.add(&e)
		}
		for _, e := range slices.Backward(truth) {
			b.history.add(&e)
		}
		a.history.sort()
		b.history.sort()
		s := span{window: Window{After, "f"}, from: at(2000), to: at(9000), open: true}
		x, y := a.newWindow(s, nil), b.newWindow(s, nil)
		cut := rapid.IntRange(0, len(events)).Draw(rt, "cut")
		feedAll := func(w *windowTally, events []targets.Event) {
			for _, e := range events {
				for _, tally := range w.tallies {
					tally.event(1, &e)
				}
			}
		}
		feedAll(x, events)
		feedAll(y, events[cut:]) // the same records, merged in another order
		feedAll(y, events[:cut])
		sc := &scene{hasBaseline: true, goodput: 1, sawPulls: true, sawTruth: true}
		gotX, gotY := figures{}, figures{}
		for i := range x.tallies {
			x.tallies[i].report(gotX, sc)
			y.tallies[i].report(gotY, sc)
		}
		for name, f := range gotX {
			if f != gotY[name] {
				rt.Fatalf("%s = %+v and, in another order, %+v", name, f, gotY[name])
			}
			if math.IsNaN(f.value) || f.value < 0 {
				rt.Fatalf("%s = %v", name, f.value)
			}
		}
	})
}
