package report

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/metachaos/metachaos/results/analysis"
)

// The words that the text, Markdown and JUnit forms of a verdict share.

// headline is what a verdict comes to, for people.
func headline(v analysis.Verdict) string {
	s := strings.ToUpper(string(v.Result)) + "  " + v.Name
	if v.Seed != 0 {
		s += fmt.Sprintf(" (seed %d)", v.Seed)
	}
	return s
}

// measured is the value of a finding with its unit, and what it was compared
// with.
func measured(f analysis.Finding) []string {
	if f.Value == nil {
		return []string{"none"}
	}
	parts := []string{quantity(*f.Value, f.Unit)}
	if f.Ratio != nil {
		parts = append(parts, fmt.Sprintf("%s × baseline %s", *f.Ratio, *f.Baseline))
	}
	return parts
}

func quantity(n analysis.Number, unit string) string {
	if unit == "" || unit == analysis.Ratio || math.IsInf(float64(n), 0) {
		return n.String()
	}
	return n.String() + " " + unit
}

// expected is what a finding was held to.
func expected(f analysis.Finding) string { return f.Is + " (" + f.Window + ")" }

// place says where in the run folder the evidence stands.
func place(e analysis.Evidence) string {
	if e.Count == 0 {
		return ""
	}
	return fmt.Sprintf("%s lines %d–%d, %s–%s: %d records",
		e.File, e.FirstLine, e.LastLine, offset(e.From), offset(e.To), e.Count)
}

func offset(d time.Duration) string { return d.Round(time.Millisecond).String() }

// reached is an offset that a fault may not have got to.
func reached(d *time.Duration) string {
	if d == nil {
		return "–"
	}
	return offset(*d)
}

// optional is a number of the summary that may be missing.
func optional(n *analysis.Number) string {
	if n == nil {
		return "–"
	}
	return n.String()
}

// observed is the value that a threshold was held against.
func observed(t analysis.ThresholdFinding) string {
	if t.Observed == nil {
		return "none"
	}
	return t.Observed.String()
}

// clean tells faults that left nothing behind.
func clean(f analysis.FaultReport) bool {
	switch f.State {
	case analysis.FaultNotReverted, analysis.FaultUnknown, analysis.FaultActive:
		return false
	}
	return true
}

// undo tells how a person takes back what is left of a fault.
func undo(f analysis.FaultReport) string {
	if f.HowTo == "" {
		return ""
	}
	return "to undo it: " + f.HowTo
}

// lines puts what is not empty on lines of its own.
func lines(parts ...string) string { return joined("\n", parts...) }

// joined joins what is not empty.
func joined(separator string, parts ...string) string {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, separator)
}
