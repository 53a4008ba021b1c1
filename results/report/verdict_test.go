package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/metachaos/metachaos/results/analysis"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func number(v float64) *analysis.Number {
	n := analysis.Number(v)
	return &n
}

func seconds(s float64) *time.Duration {
	d := time.Duration(s * float64(time.Second))
	return &d
}

func frozenPrimary() analysis.Verdict {
	return analysis.Verdict{
		Result: analysis.Fail, Name: "frozen-primary", Seed: 7, Dir: "results/runs/x-frozen-primary", LoadEnd: 40 * time.Second,
		Assumptions: []analysis.Assumption{
			{Name: "run complete", Held: true, Detail: "the run came to its end"},
			{Name: "fault freeze took effect", Held: false, Detail: "no effect was measured: state S"},
		},
		Findings: []analysis.Finding{
			{Metric: "duplicates.rate", Unit: "1", Window: "whole", Is: "value==0", Value: number(0), Result: analysis.Pass, Detail: "0 of 900 documents returned twice, in 0 of 9 scans"},
			{Metric: "availability.goodput", Unit: "operations/s", Window: "during freeze", Is: "ratio_to_baseline>0.9", Value: number(61.25),
				Baseline: number(98), Ratio: number(0.625), Result: analysis.Fail, Detail: "1225 operations done in 20 s",
				Evidence: analysis.Evidence{File: "events.ndjson", FirstLine: 981, LastLine: 2205, From: 10 * time.Second, To: 30 * time.Second, Count: 1225}},
			{Metric: "availability.recovery_time", Unit: "s", Window: "after freeze", Is: "value<=5", Value: number(math.Inf(1)), Result: analysis.Fail},
			{Metric: "staleness.rate", Unit: "1", Window: "whole", Is: "value==0", Result: analysis.Inconclusive, Detail: "there are no reads judged in the window"},
		},
		Thresholds: []analysis.ThresholdFinding{
			{Metric: "metacache_duration{op:read}", Expression: "p(95)<200", Observed: number(12.3456), Result: analysis.Pass},
			{Metric: "absent", Expression: "count>0", Result: analysis.Inconclusive, Detail: `there is no metric "absent"`},
		},
		Faults: []analysis.FaultReport{
			{ID: "freeze", Fault: "primary.freeze", Started: seconds(10), Effective: seconds(10.0042), Ended: seconds(30), State: analysis.FaultReverted,
				Evidence: "state T", Undoing: "state S"},
			{ID: "stall", Fault: "disk.stall", Started: seconds(12), State: analysis.FaultUnknown, HowTo: "kill -CONT 4711 | check"},
		},
		Summary: []analysis.Row{
			{Metric: "availability.goodput", Unit: "operations/s", Baseline: number(98), During: number(61.25), After: number(97.5)},
			{Metric: "duplicates.rate", Unit: "1", Baseline: number(0)},
		},
	}
}

func TestGoldens(t *testing.T) {
	v := frozenPrimary()
	passed := analysis.Verdict{Result: analysis.Pass, Name: "quiet"}
	for name, render := range map[string]func(io.Writer) error{
		"fail.txt":       func(w io.Writer) error { return Text(w, v, Style{}) },
		"fail-color.txt": func(w io.Writer) error { return Text(w, v, Style{Color: true, Width: 100}) },
		"pass.txt":       func(w io.Writer) error { return Text(w, passed, Style{}) },
		"fail.json":      func(w io.Writer) error { return JSON(w, v) },
		"fail.md":        func(w io.Writer) error { return Markdown(w, v) },
		"fail.xml":       func(w io.Writer) error { return JUnit(w, v) },
	} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			if err := render(&got); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", "verdict", name)
			if *update {
				if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("%s differs (rewrite it with -update):\n%s", path, got.String())
			}
		})
	}
}

func TestJSONReadsBack(t *testing.T) {
	v := frozenPrimary()
	var b bytes.Buffer
	if err := JSON(&b, v); err != nil {
		t.Fatal(err)
	}
	var back analysis.Verdict
	if err := json.Unmarshal(b.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	v.Dir = "" // where the folder lies is no part of the verdict
	if !reflect.DeepEqual(back, v) {
		t.Errorf("read back %+v, want %+v", back, v)
	}
}

func TestJUnitIsValidAndCounts(t *testing.T) {
	v := frozenPrimary()
	v.Findings[0].Detail = "a \x00 control character & <markup>"
	v.Findings[1].Detail = "]]> \x1b[31m"
	var b bytes.Buffer
	if err := JUnit(&b, v); err != nil {
		t.Fatal(err)
	}
	var got junitSuites
	if err := xml.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	s := got.Suites[0]
	if s.Tests != 10 || s.Failures != 3 || s.Errors != 3 || len(s.Cases) != 10 || got.Tests != 10 {
		t.Errorf("suite = %d tests, %d failures, %d errors, %d cases", s.Tests, s.Failures, s.Errors, len(s.Cases))
	}
}

func TestWidthIsKept(t *testing.T) {
	var b bytes.Buffer
	if err := Text(&b, frozenPrimary(), Style{Width: 100}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 100 {
			t.Errorf("a line of %d columns: %s", n, line)
		}
	}
}
