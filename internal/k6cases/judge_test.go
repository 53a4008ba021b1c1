package k6cases

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// judgement collects what differs from what was wanted.
type judgement struct{ diffs []string }

func (j *judgement) bad(format string, args ...any) {
	j.diffs = append(j.diffs, fmt.Sprintf(format, args...))
}

// judge returns what differs.
func judge(w *want, o outcome, s setting) []string {
	j := &judgement{}
	if o.late {
		j.bad("still running after %v", o.took)
		return j.diffs
	}
	if o.took.Seconds() < w.MinS {
		j.bad("ended after %v, want at least %gs", o.took, w.MinS)
	}
	exit := w.Exit
	if exit == nil {
		exit = 0.0
	}
	if d := match(exit, float64(o.code)); d != "" {
		j.bad("exit: %s", d)
	}
	j.text("stdout", o.stdout, substAll(s, w.StdoutHas), substAll(s, w.StdoutNot), w.StdoutOrder)
	j.text("stderr", o.stderr, substAll(s, w.StderrHas), substAll(s, w.StderrNot), w.StderrOrder)
	for _, alternatives := range w.StderrAny {
		if !slices.ContainsFunc(substAll(s, alternatives), func(a string) bool { return strings.Contains(o.stderr, a) }) {
			j.bad("stderr lacks any of %q", alternatives)
		}
	}
	for text, count := range w.StderrCount {
		if d := match(count, float64(strings.Count(o.stderr, text))); d != "" {
			j.bad("occurrences of %q in stderr: %s", text, d)
		}
	}
	if w.NoSummary && o.export != nil {
		j.bad("a summary export was written")
	}
	if len(w.Metrics)+len(w.Absent)+len(w.Thr)+len(w.Checks)+len(w.Groups) > 0 {
		j.export(w, o.export)
	}
	for name, f := range w.Files {
		inner := &judgement{}
		inner.file(s.dir, name, f)
		for _, d := range inner.diffs {
			j.bad("file %s: %s", name, d)
		}
	}
	return j.diffs
}

func substAll(s setting, texts []string) []string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = s.subst(text)
	}
	return out
}

func (j *judgement) text(what, got string, has, not, order []string) {
	for _, s := range has {
		if !strings.Contains(got, s) {
			j.bad("%s lacks %q", what, s)
		}
	}
	for _, s := range not {
		if strings.Contains(got, s) {
			j.bad("%s has %q", what, s)
		}
	}
	at := 0
	for _, s := range order {
		i := strings.Index(got[at:], s)
		if i < 0 {
			j.bad("%s: %q is missing or out of order", what, s)
			return
		}
		at += i + len(s)
	}
}

// match compares one value; "" means equal. A want with min, max or not is a
// range.
func match(want, got any) string {
	if m, ok := want.(map[string]any); ok {
		if d, isRange := matchRange(m, got); isRange {
			return d
		}
	}
	if a, ok := want.(float64); ok {
		if b, ok := got.(float64); ok {
			if math.Abs(a-b) <= 1e-6*math.Max(1, math.Abs(a)) {
				return ""
			}
			return fmt.Sprintf("got %v, want %v", b, a)
		}
	}
	x, _ := json.Marshal(want) // both come from JSON
	y, _ := json.Marshal(got)
	if string(x) == string(y) {
		return ""
	}
	return fmt.Sprintf("got %s, want %s", y, x)
}

func matchRange(m map[string]any, got any) (diff string, isRange bool) {
	number, isNumber := got.(float64)
	if low, ok := m["min"].(float64); ok {
		if isRange = true; !isNumber || number < low {
			return fmt.Sprintf("got %v, want at least %v", got, low), true
		}
	}
	if high, ok := m["max"].(float64); ok {
		if isRange = true; !isNumber || number > high {
			return fmt.Sprintf("got %v, want at most %v", got, high), true
		}
	}
	if other, ok := m["not"]; ok {
		if isRange = true; match(other, got) == "" {
			return fmt.Sprintf("got %v, want another value", got), true
		}
	}
	return "", isRange
}

type group struct {
	Path   string           `json:"path"`
	Groups map[string]group `json:"groups"`
	Checks map[string]struct {
		Path   string  `json:"path"`
		Passes float64 `json:"passes"`
		Fails  float64 `json:"fails"`
	} `json:"checks"`
}

// walk notes the paths of all groups and what became of all checks.
func (g group) walk(paths map[string]bool, checks map[string][2]float64) {
	paths[g.Path] = true
	for _, c := range g.Checks {
		checks[c.Path] = [2]float64{c.Passes, c.Fails}
	}
	for _, inner := range g.Groups {
		inner.walk(paths, checks)
	}
}

// export judges a summary export.
func (j *judgement) export(w *want, raw []byte) {
	if raw == nil {
		j.bad("no summary export")
		return
	}
	var x struct {
		Metrics map[string]map[string]any `json:"metrics"`
		Root    group                     `json:"root_group"`
	}
	if err := json.Unmarshal(raw, &x); err != nil {
		j.bad("summary export: %v", err)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(w.Metrics)) {
		if x.Metrics[name] == nil {
			j.bad("metric %s is missing", name)
			continue
		}
		for key, value := range w.Metrics[name] {
			if d := match(value, x.Metrics[name][key]); d != "" {
				j.bad("metric %s %s: %s", name, key, d)
			}
		}
	}
	for _, name := range w.Absent {
		if x.Metrics[name] != nil {
			j.bad("metric %s is present", name)
		}
	}
	for name, expressions := range w.Thr {
		thresholds, _ := x.Metrics[name]["thresholds"].(map[string]any)
		for expression, held := range expressions {
			// the export says true for a threshold that was crossed
			if crossed, ok := thresholds[expression].(bool); !ok {
				j.bad("threshold %s %q is missing", name, expression)
			} else if crossed == held {
				j.bad("threshold %s %q: got ok=%v", name, expression, !crossed)
			}
		}
	}
	paths, checks := map[string]bool{}, map[string][2]float64{}
	x.Root.walk(paths, checks)
	for _, p := range w.Groups {
		if !paths[p] {
			j.bad("group %q is missing", p)
		}
	}
	for p, counts := range w.Checks {
		if got, ok := checks[p]; !ok || got != counts {
			j.bad("check %q: got %v passes and fails, want %v", p, got, counts)
		}
	}
	if len(j.diffs) > 0 { // to tell which conditions of a failing case failed
		for p, counts := range checks {
			if counts[1] > 0 {
				j.bad("(failing check: %s)", p)
			}
		}
	}
}
