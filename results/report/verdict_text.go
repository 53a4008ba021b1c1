package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/metachaos/metachaos/results/analysis"
)

// Style says how a terminal shows text.
type Style struct {
	Color bool
	// Width is the number of columns to stay within, as far as words can be
	// wrapped; 0 means any.
	Width int
}

// Text writes the verdict for a terminal.
func Text(w io.Writer, v analysis.Verdict, s Style) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", s.paint(v.Result, headline(v)))
	s.textFindings(&b, v.Findings)
	s.textThresholds(&b, v.Thresholds)
	s.textFaults(&b, v.Faults)
	s.textSummary(&b, v.Summary)
	textAssumptions(&b, v.Assumptions)
	if v.Dir != "" {
		fmt.Fprintf(&b, "\nRecord: %s\n", v.Dir)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write verdict: %w", err)
	}
	return nil
}

// paint colours a text by a result: green, red or yellow.
func (s Style) paint(r analysis.Result, words string) string {
	if !s.Color {
		return words
	}
	code := map[analysis.Result]string{analysis.Pass: "32", analysis.Fail: "31"}[r]
	if code == "" {
		code = "33"
	}
	return "\x1b[1;" + code + "m" + words + "\x1b[0m"
}

// put writes a table. Only its last column wraps: it holds the sentences.
func (s Style) put(b *strings.Builder, header []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	last := len(header) - 1
	room := s.Width
	for column := range last {
		widest := text.LongestLineLen(header[column])
		for _, row := range rows {
			widest = max(widest, text.LongestLineLen(row[column]))
		}
		room -= widest + len(columnGap)
	}
	t := table.NewWriter()
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", columnGap
	t.SetStyle(style)
	t.AppendHeader(tableRow(header))
	for _, row := range rows {
		if s.Width > 0 {
			row[last] = wrap(row[last], max(room, narrowest))
		}
		t.AppendRow(tableRow(row))
	}
	b.WriteByte('\n')
	for line := range strings.Lines(t.Render()) {
		b.WriteString(strings.TrimRight(line, " \n"))
		b.WriteByte('\n')
	}
}

const (
	columnGap = "  "
	// narrowest is how far a column of sentences shrinks.
	narrowest = 24
)

func tableRow(cells []string) table.Row {
	row := make(table.Row, len(cells))
	for i, c := range cells {
		row[i] = c
	}
	return row
}

// wrap wraps each line on its own.
func wrap(s string, width int) string {
	var out []string
	for line := range strings.SplitSeq(s, "\n") {
		out = append(out, text.WrapSoft(line, width))
	}
	return strings.Join(out, "\n")
}

func (s Style) result(r analysis.Result) string { return s.paint(r, string(r)) }

func (s Style) textFindings(b *strings.Builder, findings []analysis.Finding) {
	var rows [][]string
	for _, f := range findings {
		rows = append(rows, []string{s.result(f.Result), lines(f.Metric, expected(f)), lines(measured(f)...), lines(f.Detail, place(f.Evidence))})
	}
	s.put(b, []string{"RESULT", "EXPECTATION", "VALUE", "EVIDENCE"}, rows)
}

func (s Style) textThresholds(b *strings.Builder, thresholds []analysis.ThresholdFinding) {
	var rows [][]string
	for _, f := range thresholds {
		rows = append(rows, []string{s.result(f.Result), lines(f.Metric, f.Expression), observed(f), f.Detail})
	}
	s.put(b, []string{"RESULT", "THRESHOLD", "VALUE", "NOTE"}, rows)
}

func (s Style) textFaults(b *strings.Builder, faults []analysis.FaultReport) {
	var rows [][]string
	for _, f := range faults {
		state := string(f.State)
		if !clean(f) {
			state = s.paint(analysis.Fail, state)
		}
		rows = append(rows, []string{lines(f.ID, f.Fault), reached(f.Started), reached(f.Effective), reached(f.Ended), state,
			lines(f.Evidence, f.Undoing, undo(f))})
	}
	s.put(b, []string{"FAULT", "STARTED", "EFFECTIVE", "ENDED", "STATE", "EVIDENCE"}, rows)
}

func (s Style) textSummary(b *strings.Builder, summary []analysis.Row) {
	var rows [][]string
	for _, r := range summary {
		unit := r.Unit
		if unit == analysis.Ratio {
			unit = ""
		}
		rows = append(rows, []string{r.Metric, optional(r.Baseline), optional(r.During), optional(r.After), unit})
	}
	s.put(b, []string{"METRIC", "BASELINE", "WORST DURING", "AFTER", "UNIT"}, rows)
}

func textAssumptions(b *strings.Builder, all []analysis.Assumption) {
	title := "\nAssumptions that do not hold, so that nothing passes:\n"
	for _, a := range all {
		if !a.Held {
			fmt.Fprintf(b, "%s  %s: %s\n", title, a.Name, a.Detail)
			title = ""
		}
	}
}
