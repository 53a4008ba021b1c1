package analysis

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/metachaos/metachaos/results"
)

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
		{name: "most iterations threw", failed: "script worked", spoil: func(r *record) {
			r.manifest.Script = results.ScriptExit{CompletedIterations: 9, FailedIterations: 5}
		}},
		{name: "some iterations threw", spoil: func(r *record) {
			r.manifest.Script = results.ScriptExit{CompletedIterations: 9, FailedIterations: 4}
		}},
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
