package script

import (
	"context"

	"github.com/grafana/sobek"

	"github.com/metachaos/metachaos/results"
)

// Host is what a native module sees of the VU that imported it. The first
// three methods have the shape of k6's extension API, so that a module written
// against them also fits a stock k6.
//
// A Host belongs to one JavaScript runtime and is used on its event loop only,
// except for the functions that RegisterCallback returns.
type Host interface {
	// Context ends when the running iteration is to stop. In init code it is
	// the context of the initialisation.
	Context() context.Context
	// Runtime is the VU's JavaScript runtime.
	Runtime() *sobek.Runtime
	// RegisterCallback keeps the iteration open until the function it returns
	// is called, exactly once and from any goroutine, with a job for the event
	// loop.
	RegisterCallback() func(func() error)
	// InInit reports whether init code is running.
	InInit() bool
	// VU is the number of the VU in this instance, from 1; 0 in the first init
	// and in setup, teardown and handleSummary.
	VU() int
	// Meter makes and records metrics.
	Meter() Meter
}

// Meter makes metrics and records samples under the VU's current tags.
type Meter interface {
	// Metric returns the metric of that name, made in init code only.
	Metric(name string, kind results.MetricKind, contains results.Contains) (*results.Metric, error)
	// Record adds one sample now. Tags are added to the VU's own and win over
	// them; nil adds none. It must not be called in init code.
	Record(m *results.Metric, value float64, tags map[string]string)
}

// Module is a native module that scripts can import. One Module serves all
// VUs; Exports is called once for each VU that imports it, in its init.
type Module interface {
	Exports(h Host) Exports
}

// Exports are what an import of the module sees.
type Exports struct {
	Default any
	Named   map[string]any
}
