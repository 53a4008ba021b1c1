package cli_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/metachaos/metachaos/results/analysis"
)

// checkVerdict reads verdict.json and checks that the named expectations
// passed and failed, and that each failure points to records which exist.
func checkVerdict(t *testing.T, dir string, passed, failed []string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "verdict.json"))
	if err != nil {
		t.Fatal(err)
	}
	var v analysis.Verdict
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, f := range v.Findings {
		seen[f.Metric] = true
		want := f.Result
		if slices.Contains(passed, f.Metric) {
			want = analysis.Pass
		} else if slices.Contains(failed, f.Metric) {
			want = analysis.Fail
		}
		if f.Result != want {
			t.Errorf("%s over %s: %s, want %s: %s", f.Metric, f.Window, f.Result, want, f.Detail)
		}
		if f.Result == analysis.Fail {
			checkEvidence(t, dir, f)
		}
	}
	for _, metric := range append(passed, failed...) {
		if !seen[metric] {
			t.Errorf("the verdict does not speak of %s", metric)
		}
	}
	for _, a := range v.Assumptions {
		if !a.Held {
			t.Errorf("assumption %s does not hold: %s", a.Name, a.Detail)
		}
	}
}

func checkEvidence(t *testing.T, dir string, f analysis.Finding) {
	t.Helper()
	e := f.Evidence
	if f.Value == nil || e.File == "" || e.Count == 0 || e.FirstLine < 1 || e.LastLine < e.FirstLine {
		t.Errorf("%s failed without a figure or without evidence: %+v", f.Metric, f)
		return
	}
	file, err := os.Open(filepath.Join(dir, e.File))
	if err != nil {
		t.Error(err)
		return
	}
	defer file.Close()
	lines := 0
	for s := bufio.NewScanner(file); s.Scan(); {
		lines++
	}
	if e.LastLine > lines {
		t.Errorf("%s: evidence at line %d of %s, which has %d", f.Metric, e.LastLine, e.File, lines)
	}
}
