package output

import (
	"context"
	"fmt"
	"math"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/metachaos/metachaos/results"
)

// telemetry hands samples to the OpenTelemetry SDK: a Counter becomes a
// counter, a Gauge a gauge, a Trend a histogram, and a Rate a counter of its
// values by whether they are zero.
type telemetry struct {
	env    Env
	config telemetryConfig

	meters   metric.Meter
	provider *sdk.MeterProvider
	exporter *watchedExporter

	mu          sync.Mutex // guards the fields below
	run         Run
	instruments map[*results.Metric]instrument
	attributes  memory[attribute.Set]
}

var _ Output = (*telemetry)(nil)

// instrument records one value; ctx carries nothing but what the SDK asks for.
type instrument func(ctx context.Context, value float64, attributes attribute.Set)

func openTelemetry(argument string, env Env) (Output, error) {
	if argument != "" {
		return nil, fmt.Errorf("it takes no argument, got %q: set K6_OTEL_GRPC_EXPORTER_ENDPOINT or K6_OTEL_HTTP_EXPORTER_ENDPOINT", argument)
	}
	config, err := readTelemetryConfig(env)
	if err != nil {
		return nil, err
	}
	return &telemetry{env: env, config: config, instruments: map[*results.Metric]instrument{}, attributes: memory[attribute.Set]{}}, nil
}

// Start connects to the collector, which may come up later; see [Output].
func (o *telemetry) Start(ctx context.Context, run Run) error {
	exporter, err := o.config.exporter(ctx)
	if err != nil {
		return fmt.Errorf("start output opentelemetry: %w", err)
	}
	o.run = run
	o.exporter = &watchedExporter{Exporter: exporter, env: o.env}
	o.provider = sdk.NewMeterProvider(
		sdk.WithResource(resource.NewSchemaless(
			attribute.String("service.name", o.config.serviceName), attribute.String("service.version", o.config.serviceVersion))),
		sdk.WithReader(sdk.NewPeriodicReader(o.exporter, sdk.WithInterval(o.config.every))),
		// The tags of a script decide how many series there are, not the SDK.
		sdk.WithCardinalityLimit(0))
	o.meters = o.provider.Meter("metachaos")
	return nil
}

// Record hands samples to the SDK, which aggregates them; see [Output].
func (o *telemetry) Record(samples ...results.Sample) {
	o.mu.Lock()
	defer o.mu.Unlock()
	ctx := context.Background()
	for i := range samples {
		s := &samples[i]
		if math.IsNaN(s.Value) {
			continue
		}
		o.instrument(s.Metric)(ctx, s.Value, o.attributes.of(s.Tags, func() attribute.Set { return o.attributesOf(s.Tags) }))
	}
}

func (o *telemetry) attributesOf(t *results.Tags) attribute.Set {
	var all []attribute.KeyValue
	for name, value := range o.run.split(t).tags {
		all = append(all, attribute.String(name, value))
	}
	return attribute.NewSet(all...)
}

func (o *telemetry) instrument(m *results.Metric) instrument {
	made, ok := o.instruments[m]
	if !ok {
		var err error
		if made, err = o.makeInstrument(m); err != nil {
			o.env.Logger.Error(fmt.Sprintf("output opentelemetry: metric %s is left out: %v", m.Name, err))
			made = func(context.Context, float64, attribute.Set) {}
		}
		o.instruments[m] = made
	}
	return made
}

func (o *telemetry) makeInstrument(m *results.Metric) (instrument, error) {
	name, unit := o.config.prefix+m.Name, metric.WithUnit(unitOf(m.Contains))
	switch m.Kind {
	case results.Counter:
		c, err := o.meters.Float64Counter(name, unit)
		return func(ctx context.Context, v float64, a attribute.Set) { c.Add(ctx, v, metric.WithAttributeSet(a)) }, err
	case results.Gauge:
		g, err := o.meters.Float64Gauge(name, unit)
		return func(ctx context.Context, v float64, a attribute.Set) { g.Record(ctx, v, metric.WithAttributeSet(a)) }, err
	case results.Trend:
		h, err := o.meters.Float64Histogram(name, unit)
		return func(ctx context.Context, v float64, a attribute.Set) { h.Record(ctx, v, metric.WithAttributeSet(a)) }, err
	}
	if !o.config.oneCounterPerRate {
		return o.twoCounters(name)
	}
	c, err := o.meters.Int64Counter(name)
	return func(ctx context.Context, v float64, a attribute.Set) {
		condition := "nonzero"
		if v == 0 {
			condition = "zero"
		}
		c.Add(ctx, 1, metric.WithAttributeSet(a), metric.WithAttributes(attribute.String("condition", condition)))
	}, err
}

// twoCounters shows a Rate as how often it was not zero, and of how many.
func (o *telemetry) twoCounters(name string) (instrument, error) {
	occurred, err := o.meters.Int64Counter(name + ".occurred")
	if err != nil {
		return nil, err
	}
	total, err := o.meters.Int64Counter(name + ".total")
	return func(ctx context.Context, v float64, a attribute.Set) {
		n := int64(0)
		if v != 0 {
			n = 1
		}
		occurred.Add(ctx, n, metric.WithAttributeSet(a))
		total.Add(ctx, 1, metric.WithAttributeSet(a))
	}, err
}

func unitOf(c results.Contains) string {
	switch c {
	case results.ContainsTime:
		return "ms"
	case results.ContainsData:
		return "By"
	}
	return ""
}

// Stop exports the final state; see [Output].
func (o *telemetry) Stop(ctx context.Context) error {
	err := o.provider.Shutdown(ctx)
	if failed := o.exporter.lastError(); failed != nil {
		err = failed
	}
	if err != nil {
		return fmt.Errorf("send the last values to opentelemetry: %w", err)
	}
	return nil
}

// watchedExporter keeps the error of the last export, which the SDK would
// only hand to a handler that all programs in the process share.
type watchedExporter struct {
	sdk.Exporter
	env Env

	mu  sync.Mutex
	err error
}

// Export passes data on. It hides its error from the SDK: values are
// cumulative, so the next export makes up for one that failed.
func (e *watchedExporter) Export(ctx context.Context, data *metricdata.ResourceMetrics) error {
	err := e.Exporter.Export(ctx, data)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil && e.err == nil {
		e.env.Logger.Warn(fmt.Sprintf("output opentelemetry: %v; the totals will be sent again", err))
	}
	e.err = err
	return nil
}

func (e *watchedExporter) lastError() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}
