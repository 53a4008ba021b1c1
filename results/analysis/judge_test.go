package analysis

import (
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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
