package report

import (
	"strings"
	"testing"
	"time"

	"github.com/metachaos/metachaos/results"
	"github.com/metachaos/metachaos/results/analysis"
)

func sampleSummary(t *testing.T) analysis.Summary {
	t.Helper()
	reg := results.NewRegistry()
	metric := reg.MustMetric
	checks := metric("checks", results.Rate, results.ContainsDefault)
	hits := metric("hits", results.Counter, results.ContainsDefault)
	wait := metric("wait", results.Trend, results.ContainsTime)
	level := metric("level", results.Gauge, results.ContainsDefault)
	iterations := metric("iterations", results.Counter, results.ContainsDefault)
	received := metric("data_received", results.Counter, results.ContainsData)
	m, err := analysis.NewMetrics(reg, map[string][]analysis.Threshold{
		"hits": {{Source: "count<5"}}, "wait": {{Source: "p(95)<200"}, {Source: "max<300"}}, "hits{lane:x}": {{Source: "count==2"}}})
	if err != nil {
		t.Fatal(err)
	}
	tag := func(group, check string) *results.Tags {
		return reg.Tags(map[string]string{"group": group, "check": check})
	}
	for i := range 3 {
		passed := 1.0
		if i == 2 {
			passed = 0
		}
		m.Record(results.Sample{Metric: checks, Tags: tag("", "served"), Value: 1}, results.Sample{Metric: checks, Tags: tag("::inner", "fresh"), Value: passed},
			results.Sample{Metric: hits, Tags: reg.Tags(map[string]string{"lane": "x"}), Value: 2}, results.Sample{Metric: wait, Value: float64(100 * (i + 1))},
			results.Sample{Metric: iterations, Value: 1}, results.Sample{Metric: level, Value: 7.25}, results.Sample{Metric: received, Value: 1500})
	}
	return m.Summary(2 * time.Second)
}

const wantSummary = `
  █ THRESHOLDS

    hits
    ✗ 'count<5' count=6

      hits{lane:x}
      ✗ 'count==2' count=6


    wait
    ✗ 'p(95)<200' p(95)=290ms
    ✗ 'max<300' max=300ms


  █ TOTAL RESULTS

    checks_total.......: 6  3/s
    checks_succeeded...: 83.33% 5 out of 6
    checks_failed......: 16.67% 1 out of 6

    ✓ served

    █ inner
      ✗ fresh
        ↳  66% — ✓ 2 / ✗ 1

    CUSTOM
    hits...............: 6  3/s
      {lane:x}.........: 6  3/s
    wait...............: avg=200ms min=100ms med=200ms max=300ms p(90)=280ms p(95)=290ms
    level..............: 7.25  min=7.25 max=7.25

    EXECUTION
    iterations.........: 3  1.5/s

    NETWORK
    data_received......: 4.5 kB  2.2 kB/s

`

func TestWriteSummary(t *testing.T) {
	var b strings.Builder
	if err := (SummaryStyle{}).Write(&b, sampleSummary(t), nil); err != nil {
		t.Fatal(err)
	}
	if got := strings.ReplaceAll(b.String(), "\n\n\n", "\n\n"); got != strings.ReplaceAll(wantSummary, "\n\n\n", "\n\n") {
		t.Errorf("got:\n%s\nwant:\n%s", b.String(), wantSummary)
	}
}

func TestWriteSummaryColoursOnRequest(t *testing.T) {
	var b strings.Builder
	if err := (SummaryStyle{Colour: true}).Write(&b, sampleSummary(t), nil); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), colourRed+"✗"+colourReset) || strings.Contains(wantSummary, "\x1b") {
		t.Error("want a red cross, and colours in that text alone")
	}
}

func TestFormatMillis(t *testing.T) {
	for ms, want := range map[float64]string{0: "0s", 0.0005: "500ns", 0.0123: "12.3µs", 1.5: "1.5ms", 999.996: "1000ms",
		1234: "1.23s", 61_000: "1m1s", -5: "-5ms"} {
		if got := formatMillis(ms); got != want {
			t.Errorf("formatMillis(%v) = %q, want %q", ms, got, want)
		}
	}
}

func TestFormatBytesAndNumbers(t *testing.T) {
	for v, want := range map[float64]string{0: "0 B", 999: "999 B", 1500: "1.5 kB", 2e9: "2.0 GB"} {
		if got := formatBytes(v); got != want {
			t.Errorf("formatBytes(%v) = %q, want %q", v, got, want)
		}
	}
	for v, want := range map[float64]string{3: "3", 1.5: "1.5", 1.0 / 3: "0.333333", -2: "-2"} {
		if got := formatNumber(v); got != want {
			t.Errorf("formatNumber(%v) = %q, want %q", v, got, want)
		}
	}
}
