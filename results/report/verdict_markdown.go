package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/metachaos/metachaos/results/analysis"
)

// Markdown writes the verdict as summary.md keeps it, for merge requests and
// the step summaries of CI.
func Markdown(w io.Writer, v analysis.Verdict) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n", inline(headline(v)))
	markdownTable(&b, "Expectations", []string{"Result", "Metric", "Expected", "Value", "Evidence"}, len(v.Findings), func(i int) []string {
		f := v.Findings[i]
		return []string{string(f.Result), f.Metric, expected(f), joined("; ", measured(f)...), joined("; ", f.Detail, place(f.Evidence))}
	})
	markdownTable(&b, "Thresholds", []string{"Result", "Metric", "Expected", "Value", "Note"}, len(v.Thresholds), func(i int) []string {
		t := v.Thresholds[i]
		return []string{string(t.Result), t.Metric, t.Expression, observed(t), t.Detail}
	})
	markdownTable(&b, "Faults", []string{"Step", "Fault", "Started", "Effective", "Ended", "State", "Evidence"}, len(v.Faults), func(i int) []string {
		f := v.Faults[i]
		return []string{f.ID, f.Fault, reached(f.Started), reached(f.Effective), reached(f.Ended), string(f.State),
			joined("; ", f.Evidence, f.Undoing, undo(f))}
	})
	markdownTable(&b, "Assumptions", []string{"Holds", "Assumption", "Detail"}, len(v.Assumptions), func(i int) []string {
		a := v.Assumptions[i]
		return []string{map[bool]string{true: "yes", false: "**no**"}[a.Held], a.Name, a.Detail}
	})
	markdownTable(&b, "Summary", []string{"Metric", "Baseline", "Worst during", "After", "Unit"}, len(v.Summary), func(i int) []string {
		r := v.Summary[i]
		return []string{r.Metric, optional(r.Baseline), optional(r.During), optional(r.After), r.Unit}
	})
	if v.Dir != "" {
		fmt.Fprintf(&b, "\nRecord: `%s`\n", v.Dir)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write verdict: %w", err)
	}
	return nil
}

// markdownTable writes n rows under a title, or nothing when there are none.
func markdownTable(b *strings.Builder, title string, header []string, n int, row func(int) []string) {
	if n == 0 {
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n| %s |\n|%s\n", title, strings.Join(header, " | "), strings.Repeat(" --- |", len(header)))
	for i := range n {
		cells := row(i)
		for k := range cells {
			cells[k] = inline(cells[k])
		}
		fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
	}
}

// inline keeps a text on its line and within its cell, and from being read as
// HTML.
func inline(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "\r", " ", "<", "&lt;", ">", "&gt;", "&", "&amp;").Replace(s)
}
