package analysis

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metachaos/metachaos/results"
	"github.com/metachaos/metachaos/results/stats"
)

func registry() *results.Registry {
	r := results.NewRegistry()
	r.MustMetric("checks", results.Rate, results.ContainsDefault)
	r.MustMetric("group_duration", results.Trend, results.ContainsTime)
	r.MustMetric("hits", results.Counter, results.ContainsDefault)
	r.MustMetric("share", results.Rate, results.ContainsDefault)
	r.MustMetric("level", results.Gauge, results.ContainsDefault)
	r.MustMetric("wait", results.Trend, results.ContainsTime)
	return r
}

func thresholds(key string, sources ...string) map[string][]Threshold {
	var ts []Threshold
	for _, s := range sources {
		ts = append(ts, Threshold{Source: s})
	}
	return map[string][]Threshold{key: ts}
}

func TestThresholdsOfMetricsWithoutSamples(t *testing.T) {
	m, err := NewMetrics(registry(), map[string][]Threshold{
		"hits": {{Source: "count>0"}}, "share": {{Source: "rate>0.5"}},
		"wait": {{Source: "p(95)<1"}, {Source: "avg>5"}}, "level": {{Source: "value>1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	sum := m.Summary(time.Second)
	got := map[string]bool{}
	for _, s := range sum.Metrics {
		for _, th := range s.Thresholds {
			got[s.Name+" "+th.Source] = th.OK
		}
	}
	for name, want := range map[string]bool{"hits count>0": false, "share rate>0.5": true,
		"wait p(95)<1": true, "wait avg>5": false, "level value>1": false} {
		if ok, found := got[name]; !found || ok != want {
			t.Errorf("%s: ok = %v, found = %v, want %v", name, ok, found, want)
		}
	}
	if !sum.Crossed() {
		t.Error("the summary says that nothing is crossed")
	}
}

func TestNewMetricsRefuses(t *testing.T) {
	for _, c := range []struct{ key, source, want string }{
		{"nope", "count>0", `no metric "nope"`},
		{"hits", "avg>0", "a counter has no avg: want count, rate"},
		{"wait", "count>0", "a trend has no count"},
		{"level", "max>0", "a gauge has no max: want value"},
		{"checks{group:}", "rate>0", "want a tag and a value"},
		{"hits", "count is 5", "want a statistic"},
	} {
		_, err := NewMetrics(registry(), thresholds(c.key, c.source))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s: %v, want %q", c.key, c.source, err, c.want)
		}
	}
}

func TestSubMetricsTakeMatchingSamples(t *testing.T) {
	reg := registry()
	m, err := NewMetrics(reg, thresholds("hits{lane:x}", "count==2"))
	if err != nil {
		t.Fatal(err)
	}
	hits := reg.Lookup("hits")
	x := reg.Tags(map[string]string{"lane": "x", "other": "1"})
	y := reg.Tags(map[string]string{"lane": "y"})
	for range 2 {
		m.Record(results.Sample{Metric: hits, Tags: x, Value: 1}, results.Sample{Metric: hits, Tags: y, Value: 5}, results.Sample{Metric: hits, Value: 7})
	}
	sum := m.Summary(time.Second)
	if v, _ := sum.Find("hits").Value("count"); v != 26 {
		t.Errorf("hits = %v, want 26", v)
	}
	if v, _ := sum.Find("hits{lane:x}").Value("count"); v != 2 {
		t.Errorf("hits{lane:x} = %v, want 2", v)
	}
	if sum.Crossed() {
		t.Error("count==2 does not hold")
	}
}

func TestChecksFormATree(t *testing.T) {
	reg := registry()
	m, err := NewMetrics(reg, nil)
	if err != nil {
		t.Fatal(err)
	}
	checks, groups := reg.Lookup("checks"), reg.Lookup("group_duration")
	tag := func(group, check string) *results.Tags {
		return reg.Tags(map[string]string{"group": group, "check": check})
	}
	m.Record(results.Sample{Metric: checks, Tags: tag("::outer::inner", "low"), Value: 1},
		results.Sample{Metric: checks, Tags: tag("::outer", "top"), Value: 0},
		results.Sample{Metric: checks, Tags: tag("", "root"), Value: 1},
		results.Sample{Metric: groups, Tags: reg.Tags(map[string]string{"group": "::empty"}), Value: 3})
	got, err := json.Marshal(m.Summary(time.Second).Root)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"name":"","path":"","groups":[` +
		`{"name":"outer","path":"::outer","groups":[{"name":"inner","path":"::outer::inner","groups":[],"checks":[` +
		`{"name":"low","path":"::outer::inner::low","passes":1,"fails":0}]}],"checks":[{"name":"top","path":"::outer::top","passes":0,"fails":1}]},` +
		`{"name":"empty","path":"::empty","groups":[],"checks":[]}],"checks":[{"name":"root","path":"::root","passes":1,"fails":0}]}`
	if string(got) != want {
		t.Errorf("root = %s\nwant   %s", got, want)
	}
}

func TestCrossedHonoursDelay(t *testing.T) {
	reg := registry()
	m, err := NewMetrics(reg, map[string][]Threshold{"hits": {{Source: "count<3", AbortOnFail: true, DelayAbort: 5 * time.Second}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		add     float64
		elapsed time.Duration
		want    string
	}{{2, 6 * time.Second, ""}, {2, 4 * time.Second, ""}, {0, 6 * time.Second, "hits: count<3"}} {
		m.Record(results.Sample{Metric: reg.Lookup("hits"), Value: step.add})
		if got := m.Crossed(step.elapsed); got != step.want {
			t.Errorf("at %v: %q, want %q", step.elapsed, got, step.want)
		}
	}
}

func TestHandleSummaryMetricsHaveTheKnownShape(t *testing.T) {
	reg := registry()
	m, err := NewMetrics(reg, thresholds("hits", "count>5", "count<5"))
	if err != nil {
		t.Fatal(err)
	}
	m.Record(results.Sample{Metric: reg.Lookup("hits"), Value: 2}, results.Sample{Metric: reg.Lookup("wait"), Value: 4})
	sum := m.Summary(2*time.Second, stats.Stat{Kind: stats.Avg}, stats.Stat{Kind: stats.Percentile, Percent: 99})
	got, err := json.Marshal(sum.HandleSummaryMetrics())
	if err != nil {
		t.Fatal(err)
	}
	want := `{"hits":{"contains":"default","thresholds":{"count\u003c5":{"ok":true},"count\u003e5":{"ok":false}},"type":"counter","values":{"count":2,"rate":1}},` +
		`"wait":{"contains":"time","type":"trend","values":{"avg":4,"p(99)":4}}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestRecordIsSafeForConcurrentUse(t *testing.T) {
	reg := registry()
	m, err := NewMetrics(reg, thresholds("hits{a:b}", "count>0"))
	if err != nil {
		t.Fatal(err)
	}
	tags := reg.Tags(map[string]string{"a": "b"})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				m.Record(results.Sample{Metric: reg.Lookup("hits"), Tags: tags, Value: 1})
				m.Crossed(time.Second)
			}
		})
	}
	wg.Wait()
	sum := m.Summary(time.Second)
	if v, _ := sum.Find("hits{a:b}").Value("count"); v != 8000 {
		t.Errorf("count = %v, want 8000", v)
	}
}
