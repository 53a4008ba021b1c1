package output

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"google.golang.org/grpc/credentials"
)

// telemetryConfig is where and how to export. What is empty is left to the
// SDK, which reads the OTEL_EXPORTER_OTLP_* variables and has defaults.
type telemetryConfig struct {
	overHTTP                    bool
	endpoint, urlPath           string
	insecure                    bool
	tls                         *tls.Config // nil when nothing about it is set
	headers                     map[string]string
	every                       time.Duration
	prefix                      string
	serviceName, serviceVersion string
	oneCounterPerRate           bool
}

func readTelemetryConfig(env Env) (telemetryConfig, error) {
	s := &settings{env: env, prefix: "OTEL_"}
	c := telemetryConfig{
		every:             s.duration("EXPORT_INTERVAL", 10*time.Second),
		prefix:            s.text("METRIC_PREFIX", ""),
		headers:           s.pairs("HEADERS", "="),
		oneCounterPerRate: s.flag("SINGLE_COUNTER_FOR_RATE", true),
		serviceName:       s.text("SERVICE_NAME", firstOf(env, "OTEL_SERVICE_NAME", "metachaos")),
		serviceVersion:    s.text("SERVICE_VERSION", env.Version),
	}
	switch protocol := s.text("EXPORTER_PROTOCOL", s.text("EXPORTER_TYPE", "grpc")); protocol {
	case "grpc":
		c.endpoint, c.insecure = s.text("GRPC_EXPORTER_ENDPOINT", ""), s.flag("GRPC_EXPORTER_INSECURE", false)
	case "http", "http/protobuf":
		c.overHTTP = true
		c.endpoint, c.insecure = s.text("HTTP_EXPORTER_ENDPOINT", ""), s.flag("HTTP_EXPORTER_INSECURE", false)
		c.urlPath = s.text("HTTP_EXPORTER_URL_PATH", "")
	default:
		return c, fmt.Errorf("K6_OTEL_EXPORTER_PROTOCOL=%q: want grpc or http/protobuf", protocol)
	}
	if err := c.readTLS(s); err != nil {
		return c, err
	}
	return c, s.err
}

func firstOf(env Env, variable, otherwise string) string {
	if value, ok := env.Lookup(variable); ok && value != "" {
		return value
	}
	return otherwise
}

func (c *telemetryConfig) readTLS(s *settings) error {
	conf, err := s.clientTLS("TLS_INSECURE_SKIP_VERIFY", "TLS_CLIENT_CERTIFICATE", "TLS_CLIENT_KEY")
	if err != nil {
		return err
	}
	if path := s.text("TLS_CERTIFICATE", ""); path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read K6_OTEL_TLS_CERTIFICATE: %w", err)
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(text) {
			return errors.New("read K6_OTEL_TLS_CERTIFICATE: the file holds no certificate in PEM form")
		}
	}
	if conf.InsecureSkipVerify || conf.RootCAs != nil || conf.Certificates != nil {
		c.tls = conf
	}
	return nil
}

func (c telemetryConfig) exporter(ctx context.Context) (sdk.Exporter, error) {
	if c.overHTTP {
		return c.httpExporter(ctx)
	}
	return c.grpcExporter(ctx)
}

func (c telemetryConfig) httpExporter(ctx context.Context) (sdk.Exporter, error) {
	var options []otlpmetrichttp.Option
	if c.endpoint != "" {
		options = append(options, otlpmetrichttp.WithEndpoint(c.endpoint))
	}
	if c.urlPath != "" {
		options = append(options, otlpmetrichttp.WithURLPath(c.urlPath))
	}
	if c.insecure {
		options = append(options, otlpmetrichttp.WithInsecure())
	}
	if c.tls != nil {
		options = append(options, otlpmetrichttp.WithTLSClientConfig(c.tls))
	}
	if len(c.headers) > 0 {
		options = append(options, otlpmetrichttp.WithHeaders(c.headers))
	}
	return otlpmetrichttp.New(ctx, options...)
}

func (c telemetryConfig) grpcExporter(ctx context.Context) (sdk.Exporter, error) {
	var options []otlpmetricgrpc.Option
	if c.endpoint != "" {
		options = append(options, otlpmetricgrpc.WithEndpoint(c.endpoint))
	}
	if c.insecure {
		options = append(options, otlpmetricgrpc.WithInsecure())
	}
	if c.tls != nil {
		options = append(options, otlpmetricgrpc.WithTLSCredentials(credentials.NewTLS(c.tls)))
	}
	if len(c.headers) > 0 {
		options = append(options, otlpmetricgrpc.WithHeaders(c.headers))
	}
	return otlpmetricgrpc.New(ctx, options...)
}
