package k6options

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/metachaos/metachaos/load/script"
)

// Resolved is what flags, environment and configuration file come to.
type Resolved struct {
	// Overrides lie over the script's options, Defaults under them.
	Overrides script.Overrides
	Defaults  script.Layer
	// Env is what scripts see as __ENV, beneath Overrides.Env.
	Env map[string]string
	// Lookup finds environment variables, those of -e first.
	Lookup func(name string) (string, bool)
	// Outputs are the outputs that are asked for, as KIND or KIND=ARGUMENT.
	Outputs []string
	// SummaryMode is compact, full or disabled; SummaryExport is a path or
	// empty.
	SummaryMode, SummaryExport string
	Log                        Log
	Quiet, NoColor             bool
	// BaseMode hides the object "global" from scripts.
	BaseMode    bool
	AllowRemote bool
	// SecretSources are the arguments of --secret-source.
	SecretSources []string
	// Linger asks to stay after the end of the run until interrupted.
	Linger bool
	// Warnings tell of what was given and means nothing here.
	Warnings []string
}

// DropLoad takes out what says how much load there is: the script of a plan
// says it itself.
func (r *Resolved) DropLoad() {
	for _, layer := range []script.Layer{r.Overrides.Others, r.Defaults} {
		for _, name := range append(shapes[:], "vus") {
			delete(layer, name)
		}
	}
}

// Error is an option that cannot be used. Its exit status is that of k6.
type Error struct {
	code int
	err  error
}

// Error returns the cause's text.
func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.err }

// ExitCode is 255 for a flag, and 104 for a variable or the configuration
// file.
func (e *Error) ExitCode() int { return e.code }

func errorf(code int, format string, args ...any) *Error {
	return &Error{code: code, err: fmt.Errorf(format, args...)}
}

// shapes say how much load there is. They are replaced as one.
var shapes = [...]string{"iterations", "duration", "stages", "scenarios"}

// values are options by the name of their flag, or in scripts.
type values map[string]any

// over lays values over others.
func (v values) over(below values) values {
	out := maps.Clone(below)
	if slices.ContainsFunc(shapes[:], func(s string) bool { _, ok := v[s]; return ok }) {
		for _, s := range shapes {
			delete(out, s)
		}
	}
	maps.Copy(out, v)
	return out
}

// Resolve brings together the flags that were parsed, the environment, as
// NAME=VALUE, and the configuration file, which readFile reads. Flags win over
// METACHAOS_* variables, these over K6_* ones, and those over the file; -e sets
// variables too.
func (s *Set) Resolve(environ []string, readFile func(path string) ([]byte, error)) (Resolved, error) {
	flags := s.given()
	system := variablesOf(environ)
	lookup := func(name string) (string, bool) {
		if value, ok := flags.variables()[name]; ok {
			return value, true
		}
		value, ok := system[name]
		return value, ok
	}
	environment, err := s.fromEnvironment(lookup)
	if err != nil {
		return Resolved{}, err
	}
	all := flags.over(environment)
	file, err := readConfig(all, lookup, readFile)
	if err != nil {
		return Resolved{}, err
	}
	r := Resolved{Defaults: file.options, Lookup: lookup, Env: system}
	if all[flagSystemEnv] == false {
		r.Env = map[string]string{}
	}
	if r.Overrides.Others, err = s.layer(all); err != nil {
		return Resolved{}, err
	}
	r.Overrides.Env = flags.variables()
	r.Outputs, r.Linger = all.texts(flagOut), file.linger || all[flagLinger] == true
	if len(r.Outputs) == 0 {
		r.Outputs = file.out
	}
	if err := r.readRuntime(all, lookup); err != nil {
		return Resolved{}, err
	}
	return r, nil
}

// given are the flags on the command line.
func (s *Set) given() values {
	out := values{}
	for _, b := range s.bound {
		if b.value.given {
			out[b.name()] = b.value.value
		}
	}
	return out
}

func (o option) name() string {
	if o.script != "" {
		return o.script
	}
	return o.flag
}

func (v values) variables() map[string]string {
	m, _ := v[flagEnv].(map[string]string)
	return m
}

func (v values) text(name, otherwise string) string {
	if t, ok := v[name].(string); ok && t != "" {
		return t
	}
	return otherwise
}

func (v values) texts(name string) []string {
	t, _ := v[name].([]string)
	return t
}

func variablesOf(environ []string) map[string]string {
	all := map[string]string{}
	for _, pair := range environ {
		if name, value, ok := strings.Cut(pair, "="); ok {
			all[name] = value
		}
	}
	return all
}

// fromEnvironment reads the variables of all options. An empty one sets
// nothing.
func (s *Set) fromEnvironment(lookup func(string) (string, bool)) (values, error) {
	out := values{}
	for _, b := range s.bound {
		if b.env == "" {
			continue
		}
		for _, owner := range [...]string{"METACHAOS_", "K6_"} {
			text, ok := lookup(owner + b.env)
			if !ok || text == "" {
				continue
			}
			value, err := b.kind.env(text)
			if err != nil {
				return nil, errorf(script.ExitConfig, "environment variable %s%s: %w", owner, b.env, err)
			}
			out[b.name()] = value
			break
		}
	}
	return out, nil
}

// layer encodes the options of scripts among the values.
func (s *Set) layer(all values) (script.Layer, error) {
	layer := script.Layer{}
	for _, b := range s.bound {
		value, ok := all[b.name()]
		if !ok || b.script == "" {
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("encode option %s: %w", b.script, err)
		}
		layer[b.script] = text
	}
	if all[flagNoThresholds] == true {
		layer["thresholds"] = json.RawMessage("{}")
	}
	return layer, nil
}

func (r *Resolved) readRuntime(all values, lookup func(string) (string, bool)) error {
	r.SummaryMode, r.SummaryExport = all.text(flagSummaryMode, summaryModeCompact), all.text(flagSummaryExport, "")
	if all[flagNoSummary] == true {
		r.SummaryMode = summaryModeDisabled
	}
	r.Quiet = all[flagQuiet] == true
	noColor, _ := lookup("NO_COLOR")
	r.NoColor = all[flagNoColor] == true || noColor != ""
	r.BaseMode = all.text(flagCompatibility, "") == "base"
	r.AllowRemote = all[flagAllowRemote] == true
	r.SecretSources = all.texts(flagSecretSource)
	if t := all.text(flagTracesOutput, "none"); t != "none" {
		return errorf(script.ExitOther, "--%s %s: traces are not exported here; only none is accepted", flagTracesOutput, t)
	}
	for _, flag := range []string{flagAddress, flagProfiling} {
		if _, ok := all[flag]; ok {
			r.Warnings = append(r.Warnings, "--"+flag+" is ignored: there is no REST API here")
		}
	}
	var err error
	r.Log, err = parseLog(all)
	return err
}
