package analysis

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/metachaos/metachaos/results"
)

// Subject is what of a metric a condition looks at.
type Subject string

// The subjects.
const (
	SubjectValue Subject = "value"
	// SubjectRatio is the value divided by that of the baseline window.
	SubjectRatio Subject = "ratio_to_baseline"
)

// Condition is what an expectation demands: "ratio_to_baseline>0.9".
type Condition struct {
	Subject Subject
	Op      string // < <= > >= == !=
	Value   float64
}

// Expectation is a parsed [results.Expectation].
type Expectation struct {
	// Metric is the name in the catalogue, and Label, if set, the value of its
	// label that is looked at.
	Metric    string
	Label     string
	Window    Window
	Condition Condition
}

// ParseExpectation checks everything about an expectation that can be known
// without a run.
func ParseExpectation(e results.Expectation) (Expectation, error) {
	out := Expectation{}
	selector, err := ParseSelector(strings.TrimSpace(e.Metric))
	if err != nil {
		return out, fmt.Errorf("parse expectation: %w", err)
	}
	info, err := LookupMetric(selector.Metric)
	if err != nil {
		return out, fmt.Errorf("parse expectation: %w", err)
	}
	out.Metric = info.Name
	if selector.Tags != nil {
		label, ok := selector.Tags[info.By]
		switch {
		case info.By == "":
			return out, fmt.Errorf("parse expectation: metric %s has no labels: leave out the braces in %q", info.Name, e.Metric)
		case !ok || len(selector.Tags) != 1:
			return out, fmt.Errorf("parse expectation: metric %s has only the label %s: want %s{%s:VALUE}, got %q", info.Name, info.By, info.Name, info.By, e.Metric)
		}
		out.Label = label
	}
	if out.Window, err = ParseWindow(e.Window); err != nil {
		return out, fmt.Errorf("parse expectation of %s: %w", info.Name, err)
	}
	if out.Condition, err = ParseCondition(e.Is); err != nil {
		return out, fmt.Errorf("parse expectation of %s: %w", info.Name, err)
	}
	return out, nil
}

// ParseCondition reads "value OP number" or "ratio_to_baseline OP number".
func ParseCondition(s string) (Condition, error) {
	const want = `want value or ratio_to_baseline, one of < <= > >= == !=, and a number, for example "value==0"`
	at := strings.IndexAny(s, "<>=!")
	if at < 0 {
		return Condition{}, fmt.Errorf("bad condition %q: %s", s, want)
	}
	subject := Subject(strings.TrimSpace(s[:at]))
	if subject != SubjectValue && subject != SubjectRatio {
		return Condition{}, fmt.Errorf("bad condition %q: unknown subject %q: %s", s, subject, want)
	}
	i := slices.IndexFunc(operators[:], func(op string) bool { return strings.HasPrefix(s[at:], op) })
	if i < 0 || operators[i] == "===" {
		return Condition{}, fmt.Errorf("bad condition %q: unknown operator at %q: %s", s, s[at:], want)
	}
	op := operators[i]
	number := strings.TrimSpace(s[at+len(op):])
	value, err := strconv.ParseFloat(number, 64)
	if err != nil || !isDecimal(number) {
		return Condition{}, fmt.Errorf("bad condition %q: %q is no number: %s", s, number, want)
	}
	return Condition{Subject: subject, Op: op, Value: value}, nil
}

// String returns the form that [ParseCondition] reads.
func (c Condition) String() string {
	return string(c.Subject) + c.Op + strconv.FormatFloat(c.Value, 'g', -1, 64)
}

// Holds reports whether an observed subject meets the condition.
func (c Condition) Holds(observed float64) bool {
	return Expression{Op: c.Op, Value: c.Value}.Holds(observed)
}

// name returns the metric as a plan writes it.
func (e Expectation) name(info MetricInfo) string {
	if e.Label == "" {
		return e.Metric
	}
	return labelled(e.Metric, info.By, e.Label)
}

func labelled(metric, label, value string) string {
	return metric + "{" + label + ":" + value + "}"
}
