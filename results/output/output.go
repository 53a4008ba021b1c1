package output

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/metachaos/metachaos/internal/suggest"
	"github.com/metachaos/metachaos/results"
)

// Output takes the samples of one run. Start, any number of Records from any
// number of goroutines, and Stop follow each other; what is recorded after
// Stop is lost and what is recorded before Start must not be.
type Output interface {
	results.Recorder
	// Start opens files and starts goroutines. After an error the output must
	// not be used.
	Start(ctx context.Context, run Run) error
	// Stop writes everything that was recorded, closes, and returns what went
	// wrong since Start. It gives up what is left when ctx ends.
	Stop(ctx context.Context) error
}

// Run is what an output must know of the run.
type Run struct {
	// Base is the wall-clock instant from which samples count their offsets.
	Base time.Time
	// SystemTags are the enabled ones.
	SystemTags []string
	// Watched are the metrics and sub-metrics that have thresholds or stand in
	// the summary on their own.
	Watched []Watched
}

// Watched is a metric, or with Tags a part of one.
type Watched struct {
	Metric     string
	Name       string // the selector: the metric's name or name{tag:value}
	Tags       map[string]string
	Thresholds []Threshold
}

// Threshold is one demand, as it was written.
type Threshold struct {
	Source      string
	AbortOnFail bool
	DelayAbort  time.Duration
}

// Env is what outputs see of the program's surroundings.
type Env struct {
	// Lookup returns environment variables; nil knows none.
	Lookup func(name string) (string, bool)
	// Stdout is where file outputs without a path write; nil drops it.
	Stdout io.Writer
	// Create makes a file; nil is [os.Create].
	Create func(path string) (io.WriteCloser, error)
	// Logger is told when an output begins to fail; nil drops it.
	Logger *slog.Logger
	// Version of this program, as services are told.
	Version string
}

func (e Env) withDefaults() Env {
	if e.Lookup == nil {
		e.Lookup = func(string) (string, bool) { return "", false }
	}
	if e.Stdout == nil {
		e.Stdout = io.Discard
	}
	if e.Create == nil {
		e.Create = func(path string) (io.WriteCloser, error) { return os.Create(path) }
	}
	if e.Logger == nil {
		e.Logger = slog.New(slog.DiscardHandler)
	}
	return e
}

// ConfigError is an output that cannot be used as it is asked for.
type ConfigError struct{ err error }

// Error returns the cause's text.
func (e *ConfigError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *ConfigError) Unwrap() error { return e.err }

// ExitCode is the exit status of k6 for outputs that it cannot use.
func (e *ConfigError) ExitCode() int { return 255 }

// Open returns the output that spec asks for: KIND or KIND=ARGUMENT, such as
// json=samples.ndjson.gz. It touches no file and no network: Start does.
// Errors are a [*ConfigError].
func Open(spec string, env Env) (Output, error) {
	kind, argument, _ := strings.Cut(spec, "=")
	kinds := kinds()
	open, ok := kinds[kind]
	if !ok {
		return nil, &ConfigError{fmt.Errorf("unknown output %q: %s", kind, hint(kind, slices.Sorted(maps.Keys(kinds))))}
	}
	o, err := open(argument, env.withDefaults())
	if err != nil {
		return nil, &ConfigError{fmt.Errorf("output %s: %w", kind, err)}
	}
	return o, nil
}

// hint names what is likely meant, if anything, and all that there is.
func hint(kind string, known []string) string {
	likely, all := suggest.Name(kind, known), "known: "+strings.Join(known, ", ")
	if likely == all {
		return all
	}
	return likely + " " + all
}

// kinds is the bill of materials.
func kinds() map[string]func(argument string, env Env) (Output, error) {
	return map[string]func(string, Env) (Output, error){
		"json":                       openJSON,
		"csv":                        openCSV,
		"prometheus-rw":              openRemoteWrite,
		"experimental-prometheus-rw": openRemoteWrite,
		"opentelemetry":              openTelemetry,
		"experimental-opentelemetry": openTelemetry,
	}
}
