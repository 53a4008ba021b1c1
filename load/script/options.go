package script

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/metachaos/metachaos/internal/suggest"
	"github.com/metachaos/metachaos/load"
)

// Options are the consolidated options of a run: what the script asks for,
// under what the caller overrides, over what the caller supplies as defaults.
type Options struct {
	Scenarios            []Scenario // in the order of their names
	Thresholds           map[string][]Threshold
	Tags                 map[string]string // on every sample
	SystemTags           []string
	SummaryTrendStats    []string
	SetupTimeout         time.Duration
	TeardownTimeout      time.Duration
	HandleSummaryTimeout time.Duration
	MinIterationDuration time.Duration // shorter iterations are padded
	NoSetup, NoTeardown  bool
	// Share is the part of the load that this process makes (executionSegment
	// and executionSegmentSequence). Scenarios are those of the whole load.
	Share load.Share
	// All holds every option that is set or has a default, as JSON. It is what
	// scripts see as exec.test.options.
	All Layer
}

// Scenario is one scenario with what scripts see of it.
type Scenario struct {
	load.Scenario
	Exec      string // the exported function that its iterations run
	Env, Tags map[string]string
}

// Threshold is one demand on a metric. Its source is parsed by whoever judges.
type Threshold struct {
	Source      string
	AbortOnFail bool
	DelayAbort  time.Duration
}

// Layer is a set of options in JSON, by name: one of several that are laid
// over each other.
type Layer map[string]json.RawMessage

// Overrides are options that the caller sets over those of the script. Nil
// fields override nothing.
type Overrides struct {
	VUs        *int64
	Iterations *int64
	Duration   *time.Duration
	Stages     []load.Stage
	Tags       map[string]string
	// Env is laid over Config.Env.
	Env map[string]string
	// Others are further options by name.
	Others Layer
}

// layer returns the overrides as options.
func (o Overrides) layer() (Layer, error) {
	l := Layer{}
	maps.Copy(l, o.Others)
	set := func(name string, v any) error {
		b, err := json.Marshal(v)
		l[name] = b
		return err
	}
	var errs []error
	if o.VUs != nil {
		errs = append(errs, set("vus", *o.VUs))
	}
	if o.Iterations != nil {
		errs = append(errs, set("iterations", *o.Iterations))
	}
	if o.Duration != nil {
		errs = append(errs, set("duration", Duration(*o.Duration)))
	}
	if o.Stages != nil {
		stages := make([]stageFields, len(o.Stages))
		for i, s := range o.Stages {
			stages[i] = stageFields{Duration: Duration(s.Duration), Target: &s.Target}
		}
		errs = append(errs, set("stages", stages))
	}
	if o.Tags != nil {
		errs = append(errs, set("tags", o.Tags))
	}
	for _, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("encode overrides: %w", err)
		}
	}
	return l, nil
}

// shapes are the options that say what load to make. They are replaced as one:
// a layer that has one of them hides all of the layers below.
var shapes = [...]string{"iterations", "duration", "stages", "scenarios"}

func (l Layer) has(name string) bool {
	v, ok := l[name]
	if !ok || string(v) == "null" {
		return false
	}
	return name != "scenarios" || string(v) != "{}"
}

// merge lays the layers over each other, the last on top.
func merge(layers ...Layer) Layer {
	out := Layer{}
	for _, l := range layers {
		if slices.ContainsFunc(shapes[:], l.has) {
			for _, s := range shapes {
				delete(out, s)
			}
		}
		for name := range l {
			if l.has(name) {
				out[name] = l[name]
			}
		}
	}
	return out
}

// conflict names two options of a layer that exclude each other.
func (l Layer) conflict() error {
	for _, pair := range [...][2]string{{"scenarios", "iterations"}, {"scenarios", "duration"}, {"scenarios", "stages"},
		{"stages", "iterations"}, {"stages", "duration"}} {
		if l.has(pair[0]) && l.has(pair[1]) {
			return fmt.Errorf("options: %s and %s exclude each other: keep one of them", pair[0], pair[1])
		}
	}
	return nil
}

// resolveOptions consolidates layers, the last on top. Warnings are about
// names that mean nothing.
func resolveOptions(layers ...Layer) (o *Options, warnings []string, err error) {
	for _, l := range layers {
		if err := l.conflict(); err != nil {
			return nil, nil, withCode(ExitConfig, err)
		}
	}
	all := merge(layers...)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !slices.Contains(knownOptions[:], name) {
			warnings = append(warnings, fmt.Sprintf("option %q means nothing and is ignored (%s)", name, suggest.Name(name, knownOptions[:])))
		}
	}
	o = &Options{}
	if err := o.decode(all); err != nil {
		return nil, warnings, withCode(ExitConfig, err)
	}
	return o, warnings, nil
}

// decode reads what this package acts upon; the other options stay as they
// are in All.
func (o *Options) decode(all Layer) error {
	setup, teardown, summary := Duration(time.Minute), Duration(time.Minute), Duration(2*time.Minute)
	var pad Duration
	var thresholds map[string]json.RawMessage
	var segment, sequence string
	o.SystemTags = defaultSystemTags()
	o.SummaryTrendStats = []string{"avg", "min", "med", "max", "p(90)", "p(95)"}
	for _, f := range []struct {
		name string
		into any
	}{
		{"setupTimeout", &setup}, {"teardownTimeout", &teardown}, {"handleSummaryTimeout", &summary},
		{"minIterationDuration", &pad}, {"tags", &o.Tags}, {"systemTags", &o.SystemTags},
		{"summaryTrendStats", &o.SummaryTrendStats}, {"noSetup", &o.NoSetup}, {"noTeardown", &o.NoTeardown},
		{"thresholds", &thresholds}, {"executionSegment", &segment}, {"executionSegmentSequence", &sequence},
	} {
		if raw, ok := all[f.name]; ok {
			if err := decodeJSON("options."+f.name, raw, f.into); err != nil {
				return err
			}
		}
	}
	o.SetupTimeout, o.TeardownTimeout = time.Duration(setup), time.Duration(teardown)
	o.HandleSummaryTimeout, o.MinIterationDuration = time.Duration(summary), time.Duration(pad)
	var err error
	if o.Share, err = load.ParseShare(segment, sequence); err != nil {
		return fmt.Errorf("options.%w", err)
	}
	if o.Thresholds, err = decodeThresholds(thresholds); err != nil {
		return err
	}
	scenarios, err := scenarioLayer(all)
	if err != nil {
		return err
	}
	if o.Scenarios, err = decodeScenarios(scenarios); err != nil {
		return err
	}
	return o.consolidate(all)
}

func decodeThresholds(raw map[string]json.RawMessage) (map[string][]Threshold, error) {
	out := map[string][]Threshold{}
	for _, metric := range slices.Sorted(maps.Keys(raw)) {
		path := "options.thresholds." + metric
		var list []json.RawMessage
		if err := decodeJSON(path, raw[metric], &list); err != nil {
			return nil, err
		}
		out[metric] = []Threshold{}
		for i, item := range list {
			t, err := decodeThreshold(fmt.Sprintf("%s[%d]", path, i), item)
			if err != nil {
				return nil, err
			}
			out[metric] = append(out[metric], t)
		}
	}
	return out, nil
}

func decodeThreshold(path string, raw json.RawMessage) (Threshold, error) {
	if len(raw) > 0 && raw[0] == '"' {
		var source string
		err := decodeJSON(path, raw, &source)
		return Threshold{Source: source}, err
	}
	var f struct {
		Threshold      string   `json:"threshold"`
		AbortOnFail    bool     `json:"abortOnFail"`
		DelayAbortEval Duration `json:"delayAbortEval"`
	}
	if err := decodeJSON(path, raw, &f); err != nil {
		return Threshold{}, err
	}
	return Threshold{Source: f.Threshold, AbortOnFail: f.AbortOnFail, DelayAbort: time.Duration(f.DelayAbortEval)}, nil
}

// consolidate fills All: what is set, the scenarios in full, and the defaults.
func (o *Options) consolidate(all Layer) error {
	o.All = Layer{"maxRedirects": json.RawMessage("10"), "batch": json.RawMessage("20"), "batchPerHost": json.RawMessage("6")}
	for name, v := range all {
		if slices.Contains(knownOptions[:], name) {
			o.All[name] = v
		}
	}
	for _, shape := range shapes {
		delete(o.All, shape)
	}
	scenarios := map[string]any{}
	for _, s := range o.Scenarios {
		scenarios[s.Name] = s.fields()
	}
	for name, v := range map[string]any{"scenarios": scenarios, "thresholds": thresholdSources(all, o.Thresholds),
		"setupTimeout": Duration(o.SetupTimeout), "teardownTimeout": Duration(o.TeardownTimeout), "tags": o.Tags,
		"summaryTrendStats": o.SummaryTrendStats, "systemTags": o.SystemTags} {
		b, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("encode options: %w", err)
		}
		o.All[name] = b
	}
	return nil
}

// thresholdSources keeps the thresholds as they were written.
func thresholdSources(all Layer, parsed map[string][]Threshold) any {
	if raw, ok := all["thresholds"]; ok {
		return raw
	}
	return parsed
}

// knownOptions are the names that k6 knows; those that this program does not
// act upon are accepted, so that scripts run as they are.
var knownOptions = [...]string{
	"vus", "duration", "iterations", "stages", "scenarios", "thresholds", "tags", "setupTimeout", "teardownTimeout",
	"summaryTrendStats", "summaryTimeUnit", "systemTags", "discardResponseBodies", "insecureSkipTLSVerify",
	"noConnectionReuse", "noVUConnectionReuse", "userAgent", "maxRedirects", "batch", "batchPerHost", "hosts", "dns",
	"throw", "minIterationDuration", "handleSummaryTimeout", "noSetup", "noTeardown", "executionSegment",
	"executionSegmentSequence", "tlsAuth", "tlsVersion", "rps", "httpDebug", "tlsCipherSuites", "noCookiesReset",
	"blockHostnames", "blacklistIPs", "paused", "localIPs", "consoleOutput", "cloud", "ext",
}

func defaultSystemTags() []string {
	return []string{"proto", "subproto", "status", "method", "url", "name", "group", "check", "error", "error_code",
		"tls_version", "scenario", "service", "expected_response"}
}
