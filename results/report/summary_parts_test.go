package report

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metachaos/metachaos/results"
	"github.com/metachaos/metachaos/results/analysis"
)

const wantParts = `
  █ TOTAL RESULTS

    checks_total.......: 3  1.5/s
    checks_succeeded...: 66.67% 2 out of 3
    checks_failed......: 33.33% 1 out of 3

    ✓ top

    █ outer

      █ inner
        ✗ deep
          ↳  50% — ✓ 1 / ✗ 1

    CUSTOM
    wait...............: avg=200ms min=100ms med=200ms max=300ms p(90)=280ms p(95)=290ms

  █ GROUP: setup

    CUSTOM
    wait...............: avg=300ms min=300ms med=300ms max=300ms p(90)=300ms p(95)=300ms

  █ SCENARIO: a

    checks_total.......: 2  1/s
    checks_succeeded...: 100.00% 2 out of 2
    checks_failed......: 0.00% 0 out of 2

    ✓ top

    CUSTOM
    wait...............: avg=150ms min=100ms med=150ms max=200ms p(90)=190ms p(95)=195ms

    █ GROUP: outer

      checks_total.......: 1  0.5/s
      checks_succeeded...: 100.00% 1 out of 1
      checks_failed......: 0.00% 0 out of 1

      CUSTOM
      wait...............: avg=200ms min=200ms med=200ms max=200ms p(90)=200ms p(95)=200ms

      █ GROUP: inner

        checks_total.......: 1  0.5/s
        checks_succeeded...: 100.00% 1 out of 1
        checks_failed......: 0.00% 0 out of 1

        ✓ deep

  █ SCENARIO: b

    checks_total.......: 1  0.5/s
    checks_succeeded...: 0.00% 0 out of 1
    checks_failed......: 100.00% 1 out of 1

    █ GROUP: outer

      checks_total.......: 1  0.5/s
      checks_succeeded...: 0.00% 0 out of 1
      checks_failed......: 100.00% 1 out of 1

      █ GROUP: inner

        checks_total.......: 1  0.5/s
        checks_succeeded...: 0.00% 0 out of 1
        checks_failed......: 100.00% 1 out of 1

        ✗ deep
          ↳  0% — ✓ 0 / ✗ 1

`

// fullSummary is the text of a run with two scenarios and nested groups.
func fullSummary(t *testing.T, st SummaryStyle) string {
	t.Helper()
	reg := results.NewRegistry()
	checks := reg.MustMetric("checks", results.Rate, results.ContainsDefault)
	wait := reg.MustMetric("wait", results.Trend, results.ContainsTime)
	metrics, err := analysis.NewMetrics(reg, nil)
	if err != nil {
		t.Fatal(err)
	}
	parts := NewParts(reg)
	record := func(m *results.Metric, v float64, pairs ...string) {
		tags := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			tags[pairs[i]] = pairs[i+1]
		}
		s := results.Sample{Metric: m, Value: v, Tags: reg.Tags(tags)}
		metrics.Record(s)
		parts.Record(s)
	}
	record(wait, 100, "scenario", "a", "group", "")
	record(wait, 200, "scenario", "a", "group", "::outer")
	record(wait, 300, "group", "::setup")
	record(checks, 1, "scenario", "a", "group", "", "check", "top")
	record(checks, 1, "scenario", "a", "group", "::outer::inner", "check", "deep")
	record(checks, 0, "scenario", "b", "group", "::outer::inner", "check", "deep")
	var b strings.Builder
	if err := st.Write(&b, metrics.Summary(2*time.Second), parts.Summary(2*time.Second)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestFullSummaryShowsScenariosAndGroups(t *testing.T) {
	if got := squeeze(fullSummary(t, SummaryStyle{Mode: SummaryFull})); got != squeeze(wantParts) {
		t.Errorf("got\n%s\nwant\n%s", got, wantParts)
	}
}

// squeeze makes any number of empty lines one.
func squeeze(s string) string {
	for strings.Contains(s, "\n\n\n") {
		s = strings.ReplaceAll(s, "\n\n\n", "\n\n")
	}
	return s
}

func TestCompactAndDisabledSummary(t *testing.T) {
	if got := fullSummary(t, SummaryStyle{Mode: SummaryCompact}); strings.Contains(got, "SCENARIO") || !strings.Contains(got, "wait") {
		t.Errorf("compact: %s", got)
	}
	if got := fullSummary(t, SummaryStyle{Mode: SummaryDisabled}); got != "" {
		t.Errorf("disabled: %s", got)
	}
}

func TestTimeUnitOfSummary(t *testing.T) {
	for unit, want := range map[string]string{"": "avg=200ms", "s": "avg=0.2s", "ms": "avg=200ms", "us": "avg=200000µs"} {
		if got := fullSummary(t, SummaryStyle{TimeUnit: unit}); !strings.Contains(got, want) {
			t.Errorf("unit %q: no %s in %s", unit, want, got)
		}
	}
}

func TestPartsAreBoundedAndTakeManyRecorders(t *testing.T) {
	reg := results.NewRegistry()
	m := reg.MustMetric("n", results.Counter, results.ContainsDefault)
	p := NewParts(reg)
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			for i := range maxParts {
				p.Record(results.Sample{Metric: m, Value: 1, Tags: reg.Tags(map[string]string{"scenario": "s", "group": fmt.Sprintf("::g%d-%d", w, i)})})
			}
		})
	}
	all.Wait()
	parts := p.Summary(time.Second)
	if n, _ := parts[0].Summary.Find("n").Value("count"); n != 4*maxParts || len(parts[0].Inner) != maxParts-1 {
		t.Errorf("%v samples in the scenario and %d groups", n, len(parts[0].Inner))
	}
}
