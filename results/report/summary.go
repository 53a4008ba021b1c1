package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/metachaos/metachaos/results"
	"github.com/metachaos/metachaos/results/analysis"
)

const (
	colourGreen = "\x1b[32m"
	colourRed   = "\x1b[31m"
	colourCyan  = "\x1b[36m"
	colourFaint = "\x1b[2m"
	colourBold  = "\x1b[1m"
	colourReset = "\x1b[0m"
)

// SummaryMode says how much the end-of-test text shows.
type SummaryMode string

// The modes, as k6 names them. The empty mode is the compact one.
const (
	SummaryCompact  SummaryMode = "compact"
	SummaryFull     SummaryMode = "full" // with the parts of the run
	SummaryDisabled SummaryMode = "disabled"
)

// SummaryStyle is how the end-of-test text looks. The zero style is compact
// and without colours.
type SummaryStyle struct {
	Mode SummaryMode
	// Colour adds escape sequences of terminals.
	Colour bool
	// TimeUnit is s, ms or us for all times; empty writes each in the unit that
	// fits it.
	TimeUnit string
}

// Write writes the end-of-test text: thresholds, totals of checks, all metrics
// by section, and in the full mode the same of each part of the run. It
// computes nothing.
func (st SummaryStyle) Write(w io.Writer, s analysis.Summary, parts []SummaryPart) error {
	if st.Mode == SummaryDisabled {
		return nil
	}
	t := &summaryText{style: st}
	t.thresholds(s)
	t.totals("TOTAL RESULTS", s, t.checkTree)
	if st.Mode == SummaryFull {
		t.parts(parts)
	}
	_, err := io.WriteString(w, t.b.String())
	return err
}

// summaryText builds the text, line by line.
type summaryText struct {
	b      strings.Builder
	style  SummaryStyle
	indent int // of all lines
	width  int // of the longest name, with its dots
}

func (t *summaryText) paint(code, s string) string {
	if !t.style.Colour {
		return s
	}
	return code + s + colourReset
}

func (t *summaryText) line(indent int, format string, args ...any) {
	if format != "" {
		indent += t.indent
	}
	t.b.WriteString(strings.Repeat(" ", indent))
	fmt.Fprintf(&t.b, format, args...)
	t.b.WriteByte('\n')
}

func (t *summaryText) mark(ok bool) string {
	if ok {
		return t.paint(colourGreen, "✓")
	}
	return t.paint(colourRed, "✗")
}

// thresholds writes the block of the metrics that have some.
func (t *summaryText) thresholds(s analysis.Summary) {
	headed := false
	for _, m := range s.Metrics {
		if len(m.Thresholds) == 0 {
			continue
		}
		if !headed {
			headed = true
			t.line(0, "")
			t.line(2, "%s", t.paint(colourBold, "█ THRESHOLDS"))
		}
		t.line(0, "")
		indent := 4
		if m.Parent != "" {
			indent = 6
		}
		t.line(indent, "%s", m.Name)
		for _, th := range m.Thresholds {
			t.line(indent, "%s '%s' %s=%s", t.mark(th.OK), th.Source, th.Stat,
				t.paint(colourCyan, t.style.formatValue(m.Type, m.Contains, th.Stat, th.Observed)))
		}
		t.line(0, "")
	}
}

// sections are the blocks after the checks, in their order; metrics that are
// in none of the others are CUSTOM.
var sections = [...]string{"CUSTOM", "HTTP", "EXECUTION", "WEBSOCKET", "GRPC", "NETWORK"}

func sectionOf(name string) string {
	switch {
	case strings.HasPrefix(name, "http_"):
		return "HTTP"
	case strings.HasPrefix(name, "data_"):
		return "NETWORK"
	case strings.HasPrefix(name, "ws_"):
		return "WEBSOCKET"
	case strings.HasPrefix(name, "grpc_"):
		return "GRPC"
	}
	switch name {
	case "iterations", "iteration_duration", "iteration_lateness", "dropped_iterations", "vus", "vus_max", "group_duration":
		return "EXECUTION"
	case "checks":
		return ""
	}
	return "CUSTOM"
}

// totals writes the block of a summary. Its checks are those that the given
// function writes of the tree.
func (t *summaryText) totals(title string, s analysis.Summary, lines func(root *analysis.Group, indent int)) {
	t.line(0, "")
	t.line(2, "%s", t.paint(colourBold, "█ "+title))
	t.width = widest(s)
	t.checks(s)
	if hasChecks(s.Root) {
		t.line(0, "")
		lines(s.Root, 4)
	}
	for _, section := range sections {
		headed := false
		for _, m := range s.Metrics {
			if sectionOf(baseName(m)) != section {
				continue
			}
			if !headed {
				headed = true
				t.line(0, "")
				t.line(4, "%s", t.paint(colourBold, section))
			}
			t.metric(m)
		}
	}
	t.line(0, "")
}

func baseName(m analysis.MetricSummary) string {
	if m.Parent != "" {
		return m.Parent
	}
	return m.Name
}

// label is the name as it stands before the dots; sub-metrics show their tags
// below their metric.
func label(m analysis.MetricSummary) string {
	if m.Parent != "" {
		return "  " + strings.TrimPrefix(m.Name, m.Parent)
	}
	return m.Name
}

func widest(s analysis.Summary) int {
	width := utf8.RuneCountInString("checks_succeeded")
	for _, m := range s.Metrics {
		width = max(width, utf8.RuneCountInString(label(m)))
	}
	return width
}

func (t *summaryText) dotted(name, value string) {
	dots := strings.Repeat(".", t.width-utf8.RuneCountInString(name)+3)
	t.line(4, "%s%s: %s", name, t.paint(colourFaint, dots), value)
}

func (t *summaryText) metric(m analysis.MetricSummary) {
	t.dotted(label(m), t.values(m))
}

// values writes the statistics of a metric, as its kind is read best.
func (t *summaryText) values(m analysis.MetricSummary) string {
	value := func(name string) string {
		v, _ := m.Value(name)
		return t.paint(colourCyan, t.style.formatValue(m.Type, m.Contains, name, v))
	}
	switch m.Type {
	case results.Counter:
		return value("count") + "  " + t.paint(colourFaint, t.plainRate(m))
	case results.Gauge:
		return fmt.Sprintf("%s  min=%s max=%s", value("value"), value("min"), value("max"))
	case results.Rate:
		passes, _ := m.Value("passes")
		fails, _ := m.Value("fails")
		return fmt.Sprintf("%s %s", value("rate"), t.paint(colourFaint, fmt.Sprintf("%.0f out of %.0f", passes, passes+fails)))
	}
	var all []string
	for _, v := range m.Values {
		all = append(all, v.Name+"="+value(v.Name))
	}
	return strings.Join(all, " ")
}

func (t *summaryText) plainRate(m analysis.MetricSummary) string {
	rate, _ := m.Value("rate")
	return t.style.formatValue(m.Type, m.Contains, "rate", rate)
}

// checks writes the totals of checks.
func (t *summaryText) checks(s analysis.Summary) {
	m := s.Find("checks")
	if m == nil {
		return
	}
	rate, _ := m.Value("rate")
	passes, _ := m.Value("passes")
	fails, _ := m.Value("fails")
	total := passes + fails
	if total == 0 {
		return
	}
	perSecond := ""
	if sec := s.Elapsed.Seconds(); sec > 0 {
		perSecond = "  " + t.paint(colourFaint, formatNumber(total/sec)+"/s")
	}
	t.line(0, "")
	t.dotted("checks_total", t.paint(colourCyan, formatNumber(total))+perSecond)
	t.dotted("checks_succeeded", fmt.Sprintf("%s %s", t.paint(colourCyan, formatPercent(rate)), t.paint(colourFaint, fmt.Sprintf("%.0f out of %.0f", passes, total))))
	t.dotted("checks_failed", fmt.Sprintf("%s %s", t.paint(colourCyan, formatPercent(1-rate)), t.paint(colourFaint, fmt.Sprintf("%.0f out of %.0f", fails, total))))
}

func (t *summaryText) checkLines(g *analysis.Group, indent int) {
	for _, c := range g.Checks {
		t.line(indent, "%s %s", t.mark(c.Fails == 0), c.Name)
		if c.Fails > 0 {
			t.line(indent+2, "↳  %d%% — ✓ %d / ✗ %d", 100*c.Passes/(c.Passes+c.Fails), c.Passes, c.Fails)
		}
	}
}

// checkTree writes the checks of a group and of all groups in it.
func (t *summaryText) checkTree(g *analysis.Group, indent int) {
	t.checkLines(g, indent)
	for _, inner := range g.Groups {
		if !hasChecks(inner) {
			continue
		}
		t.line(0, "")
		t.line(indent, "%s", t.paint(colourBold, "█ "+inner.Name))
		t.checkTree(inner, indent+2)
	}
}

func hasChecks(g *analysis.Group) bool {
	if g == nil {
		return false
	}
	for _, inner := range g.Groups {
		if hasChecks(inner) {
			return true
		}
	}
	return len(g.Checks) > 0
}
