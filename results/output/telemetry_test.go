package output

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	otlp "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/metachaos/metachaos/results"
)

// otelCollector takes exports over gRPC and over HTTP.
type otelCollector struct {
	collector.UnimplementedMetricsServiceServer
	mu      sync.Mutex
	last    *collector.ExportMetricsServiceRequest
	headers map[string][]string
	path    string
}

func (c *otelCollector) Export(ctx context.Context, req *collector.ExportMetricsServiceRequest) (*collector.ExportMetricsServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = req
	c.headers, _ = metadata.FromIncomingContext(ctx)
	return &collector.ExportMetricsServiceResponse{}, nil
}

func (c *otelCollector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	req := &collector.ExportMetricsServiceRequest{}
	if err == nil {
		err = proto.Unmarshal(body, req)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last, c.path = req, r.URL.Path
	c.headers = map[string][]string{"x-scope": r.Header.Values("X-Scope")}
}

// values lists what arrived, as "name unit {attributes} value".
func (c *otelCollector) values() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, rm := range c.last.GetResourceMetrics() {
		for _, a := range rm.GetResource().GetAttributes() {
			all = append(all, a.Key+"="+a.Value.GetStringValue())
		}
		for _, sm := range rm.ScopeMetrics {
			for _, m := range sm.Metrics {
				all = append(all, valuesOf(m)...)
			}
		}
	}
	slices.Sort(all)
	return all
}

func valuesOf(m *otlp.Metric) (all []string) {
	numbers := m.GetSum().GetDataPoints()
	if m.GetGauge() != nil {
		numbers = m.GetGauge().DataPoints
	}
	for _, p := range numbers {
		attributes := map[string]string{}
		for _, a := range p.Attributes {
			attributes[a.Key] = a.Value.GetStringValue()
		}
		value := p.GetAsDouble() + float64(p.GetAsInt())
		all = append(all, fmt.Sprintf("%s %q %v %v", m.Name, m.Unit, attributes, value))
	}
	for _, p := range m.GetHistogram().GetDataPoints() {
		all = append(all, fmt.Sprintf("%s %q %d values, sum %v", m.Name, m.Unit, p.Count, p.GetSum()))
	}
	return all
}

func exportAll(t *testing.T, env map[string]string, f fixture) error {
	t.Helper()
	o, err := Open("opentelemetry", Env{Lookup: lookup(env), Version: "1.2"})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Start(t.Context(), f.run); err != nil {
		t.Fatal(err)
	}
	recordAll(o, f, f.tags)
	recordAll(o, f, f.tags.With("vu", "8"))
	return o.Stop(t.Context())
}

func TestTelemetryOverGRPC(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c, server := &otelCollector{}, grpc.NewServer()
	collector.RegisterMetricsServiceServer(server, c)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) }) // ends by Stop
	defer serving.Wait()
	defer server.Stop()
	f := newFixture()
	if err := exportAll(t, map[string]string{"K6_OTEL_GRPC_EXPORTER_ENDPOINT": listener.Addr().String(), "K6_OTEL_GRPC_EXPORTER_INSECURE": "true",
		"K6_OTEL_METRIC_PREFIX": "k6_", "K6_OTEL_HEADERS": "x-scope=one", "K6_OTEL_SERVICE_NAME": "svc"}, f); err != nil {
		t.Fatal(err)
	}
	tags := fmt.Sprint(f.run.split(f.tags).tags)
	with := func(name, value string) string {
		all := maps.Clone(f.run.split(f.tags).tags)
		all[name] = value
		return fmt.Sprint(all)
	}
	want := []string{
		`k6_lat "ms" 200 values, sum 10100`,
		`k6_level "" ` + tags + ` 5`,
		`k6_mine "" ` + tags + ` 14`,
		`k6_share "" ` + with("condition", "nonzero") + ` 2`,
		`k6_share "" ` + with("condition", "zero") + ` 2`,
		`service.name=svc`, `service.version=1.2`,
	}
	if got := c.values(); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := c.headers["x-scope"]; !slices.Equal(got, []string{"one"}) {
		t.Errorf("header x-scope = %v", got)
	}
}

func TestTelemetryOverHTTP(t *testing.T) {
	c := &otelCollector{}
	server := httptest.NewServer(c)
	defer server.Close()
	f := newFixture()
	if err := exportAll(t, map[string]string{"K6_OTEL_EXPORTER_PROTOCOL": "http/protobuf", "K6_OTEL_HTTP_EXPORTER_ENDPOINT": server.Listener.Addr().String(),
		"K6_OTEL_HTTP_EXPORTER_INSECURE": "true", "K6_OTEL_HTTP_EXPORTER_URL_PATH": "/x/metrics", "K6_OTEL_SINGLE_COUNTER_FOR_RATE": "false",
		"K6_OTEL_HEADERS": "X-Scope=two"}, f); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(c.values(), "\n")
	for _, want := range []string{"share.occurred", "share.total", "service.name=metachaos"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if c.path != "/x/metrics" || !slices.Equal(c.headers["x-scope"], []string{"two"}) {
		t.Errorf("path %q, headers %v", c.path, c.headers)
	}
}

func TestTelemetryTellsThatNothingArrived(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	err := exportAll(t, map[string]string{"K6_OTEL_EXPORTER_PROTOCOL": "http", "K6_OTEL_HTTP_EXPORTER_ENDPOINT": server.Listener.Addr().String(),
		"K6_OTEL_HTTP_EXPORTER_INSECURE": "true"}, newFixture())
	if err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("Stop = %v, want the answer of the server", err)
	}
}

func TestTelemetryTakesManyRecorders(t *testing.T) {
	c := &otelCollector{}
	server := httptest.NewServer(c)
	defer server.Close()
	f := newFixture()
	o, err := Open("opentelemetry", Env{Lookup: lookup(map[string]string{"K6_OTEL_EXPORTER_PROTOCOL": "http",
		"K6_OTEL_HTTP_EXPORTER_ENDPOINT": server.Listener.Addr().String(), "K6_OTEL_HTTP_EXPORTER_INSECURE": "true"})})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Start(t.Context(), f.run); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 500 {
				o.Record(results.Sample{Metric: f.count, Value: 1})
			}
		})
	}
	all.Wait()
	if err := o.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(c.values(), "\n"); !strings.Contains(got, `mine "" map[] 4000`) {
		t.Errorf("got\n%s", got)
	}
}
