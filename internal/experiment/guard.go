package experiment

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/metachaos/metachaos/internal/suggest"
)

// guard is one abort_if condition of a plan: it trips when the comparison
// held in every second of the span.
type guard struct {
	text      string
	signal    string
	operator  string
	threshold float64
	seconds   int64
}

// Error says that the guard has tripped.
func (g guard) Error() string { return "guard tripped: " + g.text }

var guardPattern = regexp.MustCompile(`^\s*([a-z_.]+)\s*(<=|>=|==|!=|<|>)\s*(-?[0-9.]+)\s+for\s+(\S+)\s*$`)

// parseGuard reads a condition such as "availability.success_rate<0.05 for 30s".
func parseGuard(text string) (guard, error) {
	m := guardPattern.FindStringSubmatch(text)
	if m == nil {
		return guard{}, fmt.Errorf("bad condition %q, want METRIC OPERATOR NUMBER for DURATION, for example availability.success_rate<0.05 for 30s", text)
	}
	g := guard{text: text, signal: m[1], operator: m[2]}
	if _, ok := signals[g.signal]; !ok {
		return guard{}, fmt.Errorf("condition %q watches the unknown signal %q: %s", text, g.signal, suggest.Name(g.signal, signalNames()))
	}
	var err error
	if g.threshold, err = strconv.ParseFloat(m[3], 64); err != nil {
		return guard{}, fmt.Errorf("bad number in condition %q", text)
	}
	span, err := time.ParseDuration(m[4])
	if err != nil || span < time.Second || span > (liveSeconds-2)*time.Second {
		return guard{}, fmt.Errorf("bad duration %q in condition %q, want 1s to %ds", m[4], text, liveSeconds-2)
	}
	g.seconds = int64(span / time.Second)
	return g, nil
}

// tripped reports whether the condition held in each of the last seconds.
func (g guard) tripped(second func(back int64) liveSlot) bool {
	for back := int64(1); back <= g.seconds; back++ {
		value, ok := signals[g.signal](second(back))
		if !ok || !g.holds(value) {
			return false
		}
	}
	return true
}

func (g guard) holds(value float64) bool {
	switch g.operator {
	case "<":
		return value < g.threshold
	case "<=":
		return value <= g.threshold
	case ">":
		return value > g.threshold
	case ">=":
		return value >= g.threshold
	case "==":
		return value == g.threshold
	default: // the pattern admits nothing but != here
		return value != g.threshold
	}
}

// watchGuards calls trip once, for the first guard that trips. Only seconds
// since the start of the watch count.
func watchGuards(ctx context.Context, guards []guard, l *live, trip func(guard)) {
	if len(guards) == 0 {
		return
	}
	start := int64(l.base.Now()/time.Second) + 1
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, g := range guards {
			if int64(l.base.Now()/time.Second)-g.seconds >= start && g.tripped(l.second) {
				trip(g)
				return
			}
		}
	}
}
