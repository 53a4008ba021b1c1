package analysis

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/metachaos/metachaos/chaos"
	"github.com/metachaos/metachaos/results"
	"github.com/metachaos/metachaos/targets"
)

// record is a run by hand: a baseline of 4 s, a fault from 4 s to 8 s, and
// 4 s after it. Ten reads a second are done, but none between 4 s and 6 s.
type record struct {
	manifest   results.Manifest
	events     []targets.Event
	truth      []targets.Truth
	injections []chaos.Injection
	samples    int
}

func frozen(expectations ...results.Expectation) record {
	r := record{manifest: results.Manifest{
		Name: "frozen", Seed: 7, LoadEnd: 12 * time.Second, MinOperations: 39, Expectations: expectations,
		Topology: targets.Topology{Nodes: []targets.Node{{ID: "a", Shard: "s1"}, {ID: "b", Shard: "s2"}}},
	}}
	for i := range 120 {
		e := read(100*i, 100*i+1, "s1")
		if i >= 40 && i < 60 {
			e.Outcome, e.Code, e.Shard = targets.Unknown, targets.CodeTimeout, ""
		}
		r.events = append(r.events, e)
	}
	r.truth = append(r.truth, targets.Truth{At: -1, Kind: targets.TruthCommit, Object: route, Epoch: 1, Owner: "s1"})
	for i := range 12 {
		r.truth = append(r.truth, targets.Truth{At: at(1000 * i), Kind: targets.TruthGrant, Object: route, Epoch: 1, Owner: "s1", To: "c1", Cause: targets.CauseTTL})
	}
	for i, phase := range []chaos.Phase{chaos.PhasePlanned, chaos.PhaseStarted, chaos.PhaseEffective, chaos.PhaseReverting, chaos.PhaseReverted} {
		offsets := []int{0, 4000, 4000, 7990, 8000}
		r.injections = append(r.injections, chaos.Injection{At: at(offsets[i]), ID: "freeze", Fault: "primary.freeze", Phase: phase, Evidence: string(phase) + " seen"})
	}
	return r
}

func expect(metric, window, is string) results.Expectation {
	return results.Expectation{Metric: metric, Window: window, Is: is}
}

func (r record) folder(t *testing.T) string {
	t.Helper()
	f, err := results.Create(filepath.Join(t.TempDir(), "run"), r.manifest)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range r.events {
		f.Event(e)
	}
	for _, tr := range r.truth {
		f.Truth(tr)
	}
	for _, i := range r.injections {
		f.Injection(i)
	}
	reg := results.NewRegistry()
	wait := reg.MustMetric("wait", results.Trend, results.ContainsTime)
	for i := range r.samples {
		f.Record(results.Sample{At: at(i), Metric: wait, Tags: reg.Tags(map[string]string{"op": "read"}), Value: float64(i)})
	}
	if err := f.Close(nil); err != nil {
		t.Fatal(err)
	}
	return f.Dir()
}

func judgeFolder(t *testing.T, dir string) Verdict {
	t.Helper()
	run, err := results.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	v, err := Judge(run)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestJudge(t *testing.T) {
	v := judgeFolder(t, frozen(
		expect("availability.goodput", "baseline", "value==10"),
		expect("availability.goodput", "during freeze", "ratio_to_baseline>=0.5"), // 20 of 40 in 4 s
		expect("availability.goodput", "during freeze", "ratio_to_baseline>0.5"),
		expect("availability.timeouts", "during freeze", "value==20"),
		expect("availability.recovery_time", "after freeze", "value==0"),
		expect("availability.recovery_time", "whole", "value==0"),
		expect("staleness.rate", "whole", "value==0"),
		expect("herd.factor", "after freeze", "value<=1"),
		expect("pulls.total{cause:ttl}", "whole", "value==0"),
		expect("duplicates.rate", "whole", "value==0"),
		expect("staleness.rate", "after thaw", "value==0"),
		expect("availability.goodput", "whole", "is good"),
		expect("availability.recovery_time", "baseline", "value==0"),
	).folder(t))
	want := []struct {
		result Result
		detail string
	}{
		{Pass, "40 operations done in 4 s"},
		{Pass, ""},
		{Fail, "20 operations done in 4 s"},
		{Pass, ""},
		{Pass, ""},
		{Pass, ""},
		{Pass, "0 of 100 reads judged"},
		{Pass, ""},
		{Inconclusive, "records no pulls"},
		{Inconclusive, "no scan was done"},
		{Inconclusive, `no step "thaw"`},
		{Inconclusive, "bad condition"},
		{Inconclusive, "judged in after windows"},
	}
	for i, f := range v.Findings {
		if f.Result != want[i].result || !strings.Contains(f.Detail, want[i].detail) {
			t.Errorf("finding %d: %+v, want %s with %q", i, f, want[i].result, want[i].detail)
		}
	}
	if f := v.Findings[2]; float64(*f.Value) != 5 || float64(*f.Baseline) != 10 || float64(*f.Ratio) != 0.5 {
		t.Errorf("numbers of the ratio: %v %v %v", *f.Value, *f.Baseline, *f.Ratio)
	}
	if e := v.Findings[3].Evidence; e != (Evidence{results.EventsFile, 41, 60, at(4000), at(5901), 20}) {
		t.Errorf("evidence of the time-outs: %+v", e)
	}
	for _, a := range v.Assumptions {
		if !a.Held {
			t.Errorf("assumption failed: %+v", a)
		}
	}
	f := v.Faults[0]
	if f.State != FaultReverted || *f.Started != at(4000) || *f.Ended != at(8000) || f.Evidence != "effective seen" || f.Undoing != "reverted seen" {
		t.Errorf("fault: %+v", f)
	}
	if v.Result != Fail {
		t.Errorf("result = %s: a failure must show beside what is inconclusive", v.Result)
	}
	i := slices.IndexFunc(v.Summary, func(r Row) bool { return r.Metric == "availability.goodput" })
	if i < 0 || float64(*v.Summary[i].Baseline) != 10 || float64(*v.Summary[i].During) != 5 || float64(*v.Summary[i].After) != 10 {
		t.Errorf("summary: %+v", v.Summary)
	}
}

// TestAssumptionsGateThePass breaks one assumption at a time of a run that
// passes, and of one that fails.
func TestAssumptionsGateThePass(t *testing.T) {
	good, bad := expect("staleness.rate", "whole", "value==0"), expect("staleness.rate", "whole", "value==1")
	for _, c := range []struct {
		name, failed string
		spoil        func(*record)
		after        func(t *testing.T, dir string)
	}{
		{name: "nothing"},
		{name: "interrupted", failed: "run complete", spoil: func(r *record) { r.manifest.Interrupted = true }},
		{name: "too little load", failed: "minimal load", spoil: func(r *record) { r.manifest.MinOperations = 41 }},
		{name: "no effect", failed: "fault freeze took effect", spoil: func(r *record) { r.injections = slices.Delete(r.injections, 2, 3) }},
		{name: "a step that never ran", failed: "fault bounce took effect", spoil: func(r *record) { r.manifest.Steps = []string{"freeze", "bounce"} }},
		{name: "crashed", failed: "run complete", after: func(t *testing.T, dir string) {
			edit(t, filepath.Join(dir, results.ManifestFile), `"complete": true`, `"complete": false`)
		}},
		{name: "damaged line", failed: "record intact", after: func(t *testing.T, dir string) {
			edit(t, filepath.Join(dir, results.EventsFile), `{"start":0,`, `{"start":0`)
		}},
		{name: "lost records", failed: "record intact", after: func(t *testing.T, dir string) {
			edit(t, filepath.Join(dir, results.ManifestFile), `"lost": 0`, `"lost": 3`)
		}},
		{name: "records gone", failed: "record intact", after: func(t *testing.T, dir string) {
			if err := os.Truncate(filepath.Join(dir, results.TruthFile), 0); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		for _, expectation := range []results.Expectation{good, bad} {
			r := frozen(expectation)
			if c.spoil != nil {
				c.spoil(&r)
			}
			dir := r.folder(t)
			if c.after != nil {
				c.after(t, dir)
			}
			v := judgeFolder(t, dir)
			var failed []string
			for _, a := range v.Assumptions {
				if !a.Held {
					failed = append(failed, a.Name)
				}
			}
			if got := strings.Join(failed, ","); got != c.failed {
				t.Errorf("%s: failed assumptions %q, want %q", c.name, got, c.failed)
			}
			want := Inconclusive
			switch {
			case c.name == "records gone": // without truth nothing can be judged stale
			case expectation == bad:
				want = Fail
			case c.failed == "":
				want = Pass
			}
			if v.Result != want {
				t.Errorf("%s, %s: result %s, want %s", c.name, expectation.Is, v.Result, want)
			}
		}
	}
}

func edit(t *testing.T, path, old, new string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	edited := bytes.Replace(b, []byte(old), []byte(new), 1)
	if bytes.Equal(b, edited) {
		t.Fatalf("%s does not hold %q", path, old)
	}
	if err := os.WriteFile(path, edited, 0o644); err != nil {
		t.Fatal(err)
	}
}

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

func TestNumbersHaveAJSONForm(t *testing.T) {
	for _, v := range []float64{0, -1.5, 1e300, math.Inf(1), math.Inf(-1), math.NaN()} {
		b, err := json.Marshal(struct{ N Number }{Number(v)})
		if err != nil {
			t.Errorf("encode %v: %v", v, err)
			continue
		}
		var back struct{ N Number }
		if err := json.Unmarshal(b, &back); err != nil {
			t.Errorf("decode %s: %v", b, err)
		}
		if got := float64(back.N); got != v && !(math.IsNaN(got) && math.IsNaN(v)) {
			t.Errorf("%v reads back as %v", v, got)
		}
	}
}

func TestNeverRecoveredFails(t *testing.T) {
	r := frozen(expect("availability.recovery_time", "after freeze", "value<=60"))
	r.events = r.events[:80] // nothing is done after the fault
	v := judgeFolder(t, r.folder(t))
	if f := v.Findings[0]; f.Result != Fail || !math.IsInf(float64(*f.Value), 1) || !strings.Contains(f.Detail, "no second of the 4") {
		t.Errorf("finding: %+v", f)
	}
	if b, err := json.Marshal(v); err != nil || !strings.Contains(string(b), `"value":"Infinity"`) {
		t.Errorf("verdict: %s, %v", b, err)
	}
}

func TestThresholdsOfAScript(t *testing.T) {
	r := frozen()
	r.samples = 100 // 0 to 99
	r.manifest.Thresholds = map[string][]results.Threshold{
		"wait":               {{Expression: "max<100"}, {Expression: "max<50"}, {Expression: "nonsense"}},
		"wait{op:read}":      {{Expression: "min==0"}},
		"wait{ op : 'read'}": {{Expression: "min==1"}},
		"errors":             {{Expression: "count==0"}}, // never counted, but the manifest knows it
		"absent":             {{Expression: "count==0"}},
	}
	r.manifest.Metrics = []results.Metric{{Name: "errors", Kind: results.Counter, Contains: results.ContainsDefault}}
	got := map[string]Result{}
	for _, f := range judgeFolder(t, r.folder(t)).Thresholds {
		got[f.Metric+" "+f.Expression] = f.Result
		if f.Result == Inconclusive && f.Detail == "" {
			t.Errorf("threshold is inconclusive for no reason: %+v", f)
		}
	}
	for name, want := range map[string]Result{
		"wait max<100": Pass, "wait max<50": Fail, "wait nonsense": Inconclusive, "wait{op:read} min==0": Pass,
		"wait{ op : 'read'} min==1": Fail, "errors count==0": Pass, "absent count==0": Inconclusive,
	} {
		if got[name] != want {
			t.Errorf("%s: %q, want %s", name, got[name], want)
		}
	}
}

// TestHerdFallsBackToPulls judges a target without a truth log.
func TestHerdFallsBackToPulls(t *testing.T) {
	r := frozen(
		expect("herd.total", "whole", "value==2"),
		expect("herd.peak_qps{cause:ttl}", "whole", "value==2"),
		expect("pulls.total{cause:ttl}", "whole", "value==2"),
		expect("pulls.total{cause:gap}", "whole", "value==0"), // no record has it
		expect("staleness.rate", "whole", "value==0"),
	)
	r.truth = nil
	for i, shared := range []bool{false, false, true} { // the third waited for another's fetch
		r.events = append(r.events, targets.Event{Start: at(100 * i), End: at(100*i + 50), Verb: targets.EventPull,
			Outcome: targets.Done, Cause: targets.CauseTTL, Shared: shared})
	}
	v := judgeFolder(t, r.folder(t))
	for i, f := range v.Findings {
		want := Pass
		if i == 4 {
			want = Inconclusive
		}
		if f.Result != want {
			t.Errorf("%s: %s (%s), want %s", f.Metric, f.Result, f.Detail, want)
		}
	}
	if e := v.Findings[0].Evidence; e.File != results.EventsFile || e.FirstLine != 121 || e.Count != 2 {
		t.Errorf("evidence = %+v, want the pull events", e)
	}
}

func TestFaultStates(t *testing.T) {
	phase := func(ms int, id string, p chaos.Phase) chaos.Injection {
		return chaos.Injection{At: at(ms), ID: id, Phase: p, Instant: strings.HasPrefix(id, "act"), HowTo: "by hand"}
	}
	tally := newFaultTally([]string{"absent"})
	for i, r := range []chaos.Injection{
		phase(1, "act", chaos.PhaseStarted), phase(2, "act", chaos.PhaseDone),
		phase(3, "retried", chaos.PhaseStarted), phase(6, "retried", chaos.PhaseReverted), phase(5, "retried", chaos.PhaseNotReverted),
		phase(4, "stuck", chaos.PhaseStarted), phase(8, "stuck", chaos.PhaseUnknown),
		phase(5, "crashed", chaos.PhaseStarted),
		phase(6, "act-failed", chaos.PhaseStarted), phase(7, "act-failed", chaos.PhaseFailed),
	} {
		tally.add(i+1, r)
	}
	var got []string
	for _, f := range tally.reports() {
		got = append(got, f.ID+" "+string(f.State)+" "+f.HowTo)
	}
	want := []string{"act done ", "retried reverted ", "stuck unknown by hand", "crashed active ", "act-failed failed ", "absent not-started "}
	if !slices.Equal(got, want) {
		t.Errorf("states = %q, want %q", got, want)
	}
	for _, f := range tally.reports() {
		if f.TookEffect() != (f.ID == "act") {
			t.Errorf("%s took effect: %v", f.ID, f.TookEffect())
		}
	}
}

func TestSpans(t *testing.T) {
	offset := func(ms int) *time.Duration { d := at(ms); return &d }
	faults := []FaultReport{
		{ID: "a", Started: offset(4000), Effective: offset(4100), Ended: offset(6000)},
		{ID: "b", Started: offset(5000)},
		{ID: "c"},
	}
	var got []string
	for _, s := range spans(at(1000), at(9000), faults) {
		text := s.window.String() + " " + s.from.String() + " " + s.to.String()
		if s.open {
			text += " open"
		}
		got = append(got, text)
	}
	want := []string{"whole 1s 9s open", "baseline 1s 4s", "during a 4.1s 6s", "after a 6s 9s open", "during b 5s 9s open"}
	if !slices.Equal(got, want) {
		t.Errorf("spans = %q, want %q", got, want)
	}
}
