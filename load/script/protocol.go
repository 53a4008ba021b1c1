package script

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/metachaos/metachaos/results"
)

// ProtocolHost is what modules that speak a protocol (HTTP, WebSocket, gRPC)
// see of their VU beyond [Host]. Every Host that this package hands to a
// [Module] is one.
type ProtocolHost interface {
	Host
	// Options are the consolidated options; nil in the first init, in which
	// they are only being found out.
	Options() *Options
	// Tags are the VU's tags now, group and scenario among them.
	Tags() *results.Tags
	// Tagged reports whether samples are to carry that system tag.
	Tagged(system string) bool
	// Sample records one value now under exactly these tags. It does nothing
	// outside of a run.
	Sample(metric *results.Metric, value float64, tags *results.Tags)
	// SampleTogether records values of one moment, which was ago before now,
	// under the same tags. It does nothing outside of a run.
	SampleTogether(ago time.Duration, tags *results.Tags, values ...Measured)
	// Builtin returns one of the metrics that k6 defines, for example
	// "http_reqs" or "data_sent".
	Builtin(name string) *results.Metric
	// Logger takes warnings of the module.
	Logger() *slog.Logger
	// ReadFile reads a file that the script names, as open() does; init only.
	ReadFile(name string) ([]byte, error)
	// BeforeIteration has f called on the VU's goroutine before each of its
	// iterations.
	BeforeIteration(f func())
	// AtEnd has f called once, when the VU will run no more: what modules keep
	// open between iterations is closed there.
	AtEnd(f func())
	// AfterRun has f called on the VU's goroutine whenever the script's code
	// has come to its end or was cut: an iteration, setup or teardown.
	AfterRun(f func())
	// Share returns what the modules of this VU keep under a key, and makes it
	// on first use: the cookie jar of HTTP, for one, serves WebSockets too.
	Share(key any, make func() any) any
}

// Measured is one value of a metric.
type Measured struct {
	Metric *results.Metric
	Value  float64
}

var _ ProtocolHost = (*vm)(nil)

// Options returns the consolidated options; see [ProtocolHost].
func (v *vm) Options() *Options { return v.program.options }

// Tags returns the VU's tags now.
func (v *vm) Tags() *results.Tags { return v.tags }

// Tagged reports whether samples are to carry that system tag.
func (v *vm) Tagged(system string) bool { return v.program.tagged(system) }

// Sample records one value now.
func (v *vm) Sample(metric *results.Metric, value float64, tags *results.Tags) {
	v.sample(metric, value, tags)
}

// SampleTogether records values of one moment.
func (v *vm) SampleTogether(ago time.Duration, tags *results.Tags, values ...Measured) {
	if v.recorder == nil {
		return
	}
	at := v.clock.Now() - ago
	for _, m := range values {
		v.batch = append(v.batch, results.Sample{At: at, Metric: m.Metric, Tags: tags, Value: m.Value})
	}
	if len(v.batch) >= batchSize {
		v.flush()
	}
}

// Builtin returns one of the metrics that k6 defines.
func (v *vm) Builtin(name string) *results.Metric {
	m := v.registry.Lookup(name)
	if m == nil {
		panic(fmt.Sprintf("no built-in metric %q", name)) // a defect of the module
	}
	return m
}

// Logger takes warnings of modules.
func (v *vm) Logger() *slog.Logger { return v.program.cfg.Logger }

// BeforeIteration has f called before each iteration.
func (v *vm) BeforeIteration(f func()) { v.beforeIteration = append(v.beforeIteration, f) }

// AfterRun has f called when code of the script has come to its end.
func (v *vm) AfterRun(f func()) { v.afterRun = append(v.afterRun, f) }

// AtEnd has f called when the VU will run no more.
func (v *vm) AtEnd(f func()) { v.atEnd = append(v.atEnd, f) }

// end lets modules close what they keep open, the latest first.
func (v *vm) end() {
	for _, f := range slices.Backward(v.atEnd) {
		f()
	}
	v.atEnd = nil
	v.flush()
}

// Share returns what the modules of this VU keep under a key.
func (v *vm) Share(key any, make func() any) any {
	if v.shared == nil {
		v.shared = map[any]any{}
	}
	if _, ok := v.shared[key]; !ok {
		v.shared[key] = make()
	}
	return v.shared[key]
}

// ReadFile reads a file that the script names; see [ProtocolHost].
func (v *vm) ReadFile(name string) ([]byte, error) {
	if !v.inInit {
		return nil, fmt.Errorf("open %s: files can be opened in init code only", name)
	}
	text, err := v.openBeside(v.caller(), name)
	return []byte(text), err
}
