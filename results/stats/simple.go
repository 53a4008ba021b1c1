package stats

import (
	"math"
	"time"
)

var (
	_ Sink = (*Counter)(nil)
	_ Sink = (*Gauge)(nil)
	_ Sink = (*Rate)(nil)
)

// Counter sums values. The zero Counter is ready to use.
type Counter struct {
	sum  float64
	some bool
}

// Add adds value to the sum.
func (c *Counter) Add(_ time.Duration, value float64) {
	if !math.IsNaN(value) {
		c.sum += value
		c.some = true
	}
}

// Merge adds what o has counted.
func (c *Counter) Merge(o *Counter) {
	c.sum += o.sum
	c.some = c.some || o.some
}

// Empty reports whether no value was added.
func (c *Counter) Empty() bool { return !c.some }

// Stat knows count, the sum, and rate, the sum per second of elapsed.
func (c *Counter) Stat(s Stat, elapsed time.Duration) (float64, bool) {
	switch s.Kind {
	case Count:
		return c.sum, true
	case PerSecond:
		if elapsed <= 0 {
			return 0, true
		}
		return c.sum / elapsed.Seconds(), true
	}
	return 0, false
}

// Gauge keeps the last, lowest and highest value. The zero Gauge is ready to
// use.
type Gauge struct {
	last, min, max float64
	at             time.Duration
	some           bool
}

// Add makes value the last one, unless one that was measured later stands.
func (g *Gauge) Add(at time.Duration, value float64) {
	if math.IsNaN(value) {
		return
	}
	if !g.some {
		*g = Gauge{last: value, min: value, max: value, at: at, some: true}
		return
	}
	if at >= g.at {
		g.last, g.at = value, at
	}
	g.min, g.max = math.Min(g.min, value), math.Max(g.max, value)
}

// Merge takes in what o has seen. Of two last values that were measured at the
// same instant the higher one stays, so that the order of merging is no matter.
func (g *Gauge) Merge(o *Gauge) {
	switch {
	case !o.some:
		return
	case !g.some:
		*g = *o
		return
	case o.at > g.at, o.at == g.at && o.last > g.last:
		g.last, g.at = o.last, o.at
	}
	g.min, g.max = math.Min(g.min, o.min), math.Max(g.max, o.max)
}

// Empty reports whether no value was added.
func (g *Gauge) Empty() bool { return !g.some }

// Stat knows value (the last one), min and max.
func (g *Gauge) Stat(s Stat, _ time.Duration) (float64, bool) {
	switch s.Kind {
	case Value:
		return g.last, true
	case Min:
		return g.min, true
	case Max:
		return g.max, true
	}
	return 0, false
}

// Rate counts how many values are not zero. The zero Rate is ready to use.
type Rate struct{ trues, total uint64 }

// Add counts value, as true unless it is zero.
func (r *Rate) Add(_ time.Duration, value float64) {
	if math.IsNaN(value) {
		return
	}
	r.total++
	if value != 0 {
		r.trues++
	}
}

// Merge adds what o has counted.
func (r *Rate) Merge(o *Rate) {
	r.trues += o.trues
	r.total += o.total
}

// Empty reports whether no value was added.
func (r *Rate) Empty() bool { return r.total == 0 }

// Stat knows rate, the share of values that are not zero, and passes and
// fails, the numbers of values that are not zero and that are.
func (r *Rate) Stat(s Stat, _ time.Duration) (float64, bool) {
	switch s.Kind {
	case PerSecond:
		if r.total == 0 {
			return 0, true
		}
		return float64(r.trues) / float64(r.total), true
	case Passes:
		return float64(r.trues), true
	case Fails:
		return float64(r.total - r.trues), true
	}
	return 0, false
}
