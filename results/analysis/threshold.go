package analysis

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metachaos/metachaos/results"
	"github.com/metachaos/metachaos/results/stats"
)

// exitConfig is the exit status for a configuration that cannot be used.
const exitConfig = 104

// ConfigError says what is wrong with a threshold, and that the run must not
// start.
type ConfigError struct{ err error }

// Error returns what is wrong and what was expected.
func (e *ConfigError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *ConfigError) Unwrap() error { return e.err }

// ExitCode is the exit status of the program: 104.
func (e *ConfigError) ExitCode() int { return exitConfig }

func configErrorf(format string, args ...any) error {
	return &ConfigError{fmt.Errorf(format, args...)}
}

// Expression is what a threshold demands of a statistic: "p(95)<200".
type Expression struct {
	Stat  stats.Stat
	Op    string // < <= > >= == === !=
	Value float64
}

// operators in the order in which they must be tried: the longer ones first.
var operators = [...]string{"===", "==", "!=", "<=", ">=", "<", ">"}

// ParseExpression reads "statistic operator number".
func ParseExpression(s string) (Expression, error) {
	at := strings.IndexAny(s, "<>=!")
	if at < 0 {
		return Expression{}, configErrorf("threshold %q: want a statistic, one of < <= > >= == === !=, and a number, for example p(95)<200", s)
	}
	var op string
	for _, o := range operators {
		if strings.HasPrefix(s[at:], o) {
			op = o
			break
		}
	}
	if op == "" {
		return Expression{}, configErrorf("threshold %q: unknown operator at %q: want < <= > >= == === or !=", s, s[at:])
	}
	stat, err := stats.ParseStat(strings.TrimSpace(s[:at]))
	if err != nil {
		return Expression{}, configErrorf("threshold %q: %w", s, err)
	}
	number := strings.TrimSpace(s[at+len(op):])
	value, err := strconv.ParseFloat(number, 64)
	if err != nil || !isDecimal(number) {
		return Expression{}, configErrorf("threshold %q: want a number after %s, got %q", s, op, number)
	}
	return Expression{Stat: stat, Op: op, Value: value}, nil
}

// isDecimal refuses what ParseFloat reads beyond plain numbers: hexadecimals,
// underscores, infinities and NaN, which no observation can meet usefully.
func isDecimal(s string) bool {
	return s != "" && strings.Trim(s, "+-.0123456789eE") == ""
}

// String returns a form that [ParseExpression] reads.
func (e Expression) String() string {
	return e.Stat.String() + e.Op + strconv.FormatFloat(e.Value, 'g', -1, 64)
}

// Holds reports whether an observed value meets the expression.
func (e Expression) Holds(observed float64) bool {
	switch e.Op {
	case "<":
		return observed < e.Value
	case "<=":
		return observed <= e.Value
	case ">":
		return observed > e.Value
	case ">=":
		return observed >= e.Value
	case "!=":
		return observed != e.Value
	default: // == and ===
		return observed == e.Value
	}
}

// thresholdStats are the statistics that a threshold may name, by kind of
// metric.
func thresholdStats(kind results.MetricKind) []stats.Kind {
	switch kind {
	case results.Counter:
		return []stats.Kind{stats.Count, stats.PerSecond}
	case results.Gauge:
		return []stats.Kind{stats.Value}
	case results.Rate:
		return []stats.Kind{stats.PerSecond}
	default:
		return []stats.Kind{stats.Avg, stats.Min, stats.Max, stats.Med, stats.Percentile}
	}
}

// fits reports, as an error, that metrics of the kind lack the statistic.
func (e Expression) fits(m *results.Metric) error {
	allowed := thresholdStats(m.Kind)
	if slices.Contains(allowed, e.Stat.Kind) {
		return nil
	}
	names := make([]string, len(allowed))
	for i, k := range allowed {
		names[i] = string(k)
		if k == stats.Percentile {
			names[i] = "p(N)"
		}
	}
	return fmt.Errorf("a %s has no %s: want %s", m.Kind, e.Stat, strings.Join(names, ", "))
}

// evaluate judges a sink over the time that it spans. An empty Rate passes;
// other empty sinks count as 0.
func (e Expression) evaluate(s stats.Sink, elapsed time.Duration) (observed float64, ok bool) {
	observed, _ = s.Stat(e.Stat, elapsed)
	if _, isRate := s.(*stats.Rate); isRate && s.Empty() {
		return observed, true
	}
	return observed, e.Holds(observed)
}

// Selector names a metric or, with tags, the part of it whose samples carry
// all of them: "http_reqs{status:200,method:GET}".
type Selector struct {
	Metric string
	Tags   map[string]string // nil selects all samples
}

// ParseSelector reads name or name{key:value,key:value}. Keys and values may
// be quoted, and must be when they hold a comma; a value may hold colons.
func ParseSelector(s string) (Selector, error) {
	name, rest, found := strings.Cut(s, "{")
	if !found {
		if s == "" || strings.Contains(s, "}") {
			return Selector{}, configErrorf("metric selector %q: want name or name{tag:value}", s)
		}
		return Selector{Metric: s}, nil
	}
	name = strings.TrimSpace(name)
	body, closed := strings.CutSuffix(strings.TrimSpace(rest), "}")
	if name == "" || !closed {
		return Selector{}, configErrorf("metric selector %q: want name{tag:value,tag:value}", s)
	}
	tags := map[string]string{}
	for _, pair := range splitOutsideQuotes(body, ',') {
		parts := splitOutsideQuotes(pair, ':')
		key := unquote(parts[0])
		value := unquote(strings.Join(parts[1:], ":"))
		if key == "" || value == "" {
			return Selector{}, configErrorf("metric selector %q: want a tag and a value, as in {status:200}, got %q", s, pair)
		}
		if _, twice := tags[key]; twice {
			return Selector{}, configErrorf("metric selector %q: the tag %q stands twice", s, key)
		}
		tags[key] = value
	}
	return Selector{Metric: name, Tags: tags}, nil
}

// splitOutsideQuotes cuts s at each sep that no quotes enclose.
func splitOutsideQuotes(s string, sep byte) []string {
	var parts []string
	var quote byte
	start := 0
	for i := range len(s) {
		switch c := s[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case (c == '"' || c == '\'') && opensWord(s[start:i]):
			quote = c // a quote within a word is a character like others
		case c == sep:
			parts = append(parts, s[start:i])
			start = i + 1
		}
	}
	return append(parts, s[start:])
}

// opensWord reports whether a key or a value begins after before.
func opensWord(before string) bool {
	before = strings.TrimRight(before, " ")
	return before == "" || strings.HasSuffix(before, ":")
}

// unquote trims spaces and one pair of quotes.
func unquote(s string) string {
	s = strings.TrimSpace(s)
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}
