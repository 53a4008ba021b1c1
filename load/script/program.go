package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/grafana/sobek"

	"github.com/metachaos/metachaos/results"
	"github.com/metachaos/metachaos/results/stats"
)

// Config is how a script is loaded. The zero Config is usable.
type Config struct {
	// Modules are native modules beside those of k6, by the name that scripts
	// import; one with the name of a built-in module replaces it.
	Modules map[string]Module
	// Registry takes the metrics; nil makes a new one.
	Registry *results.Registry
	// Logger takes what console prints (with source=console) and what goes
	// wrong in iterations; nil drops it.
	Logger *slog.Logger
	// Env is what scripts see as __ENV.
	Env map[string]string
	// Defaults lie under the options of the script, Overrides over them.
	Defaults  Layer
	Overrides Overrides
	// InitTimeout bounds the init code of one VU; 0 is a minute.
	InitTimeout time.Duration
	// MaxCallDepth bounds the nesting of calls; 0 is 2,500. The time to unwind
	// calls that pass through native functions grows with its square.
	MaxCallDepth int
	// BaseMode leaves out what k6 adds to JavaScript in its compatibility mode
	// "extended": the name global.
	BaseMode bool
	// AllowRemote lets scripts import https addresses. The code is fetched at
	// each run and trusted as it comes.
	AllowRemote bool
	// Console takes what console prints; nil is Logger.
	Console *slog.Logger
}

// Program is a script that was read, compiled and initialised once. It is
// safe for concurrent use and can be executed once.
type Program struct {
	cfg      Config
	env      map[string]string
	registry *results.Registry
	builtin  builtinMetrics
	loader   *loader
	shared   sharedArrays
	web      webGlobals
	freeze   *sobek.Program
	runTags  *results.Tags
	linked   sobek.ModuleRecord // the entry module, once it is linked
	options  *Options           // nil in the first init
	exports  map[string]bool    // names of the exported functions
	// systemTags are those that samples are to carry; empty in the first init.
	systemTags map[string]bool
}

// Load reads a script with all that it imports, runs its init code once, and
// resolves its options. Errors bring an exit status along: see [Error].
func Load(ctx context.Context, source Source, cfg Config) (*Program, error) {
	p, err := newProgram(source, cfg)
	if err != nil {
		return nil, err
	}
	if _, err := source.text(source.Path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, errorf(ExitOther, "read script: there is no file %s: %w", source.Path, err)
		}
		return nil, errorf(ExitOther, "read script: %w", err)
	}
	v, err := newVM(ctx, p, nil, 0)
	if err != nil {
		return nil, err
	}
	defer v.end()
	p.loader.lock()
	if err := p.readExports(v); err != nil {
		return nil, err
	}
	if err := p.readOptions(v); err != nil {
		return nil, err
	}
	return p, nil
}

func newProgram(source Source, cfg Config) (*Program, error) {
	if cfg.Registry == nil {
		cfg.Registry = results.NewRegistry()
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Console == nil {
		cfg.Console = cfg.Logger
	}
	if cfg.InitTimeout == 0 {
		cfg.InitTimeout = time.Minute
	}
	if cfg.MaxCallDepth == 0 {
		cfg.MaxCallDepth = 2_500
	}
	freeze, err := sobek.Compile("freeze", freezeSource, true)
	if err != nil {
		return nil, errorf(ExitPanic, "compile: %w", err)
	}
	p := &Program{cfg: cfg, env: map[string]string{}, registry: cfg.Registry, builtin: registerMetrics(cfg.Registry),
		loader: newLoader(source, modulesOf(cfg.Modules), cfg.AllowRemote), shared: sharedArrays{byName: map[string][]string{}}, freeze: freeze,
		runTags: cfg.Registry.Tags(nil), exports: map[string]bool{}}
	maps.Copy(p.env, cfg.Env)
	maps.Copy(p.env, cfg.Overrides.Env)
	return p, nil
}

// readExports notes which functions the entry module exports.
func (p *Program) readExports(v *vm) error {
	var names []string
	if c, ok := v.entry.(*commonRecord); ok {
		if exports, ok := v.common(c).exports().(*sobek.Object); ok {
			names = exports.Keys()
		}
	} else {
		v.entry.GetExportedNames(func(all []string) { names = all })
	}
	for _, name := range names {
		if v.function(name) != nil {
			p.exports[name] = true
		}
	}
	if len(p.exports) == 0 {
		return errorf(ExitOther, "%s exports no function: want at least export default function () { … }", p.loader.source.Path)
	}
	return nil
}

// readOptions consolidates the options that the script exports with those of
// the caller.
func (p *Program) readOptions(v *vm) error {
	script := Layer{}
	if exported := v.export("options"); exported != nil && !sobek.IsNull(exported) {
		o, ok := exported.(*sobek.Object)
		if !ok {
			return errorf(ExitConfig, "options: want an object, got %s", show(exported))
		}
		text, err := o.MarshalJSON()
		if err == nil {
			err = json.Unmarshal(text, &script)
		}
		if err != nil {
			return errorf(ExitConfig, "options: want an object that JSON can hold: %w", err)
		}
	}
	over, err := p.cfg.Overrides.layer()
	if err != nil {
		return withCode(ExitConfig, err)
	}
	options, warnings, err := resolveOptions(p.cfg.Defaults, script, over)
	for _, w := range warnings {
		p.cfg.Logger.Warn(w)
	}
	if err != nil {
		return err
	}
	for _, s := range options.Scenarios {
		if !p.exports[s.Exec] {
			return errorf(ExitConfig, "options.scenarios.%s.exec: the script exports no function %q; it exports %v",
				s.Name, s.Exec, slices.Sorted(maps.Keys(p.exports)))
		}
	}
	for _, s := range options.SummaryTrendStats {
		if st, err := stats.ParseStat(s); err != nil {
			return errorf(ExitOther, "options.summaryTrendStats: %w", err)
		} else if _, ok := (&stats.Trend{}).Stat(st, 0); !ok {
			return errorf(ExitOther, "options.summaryTrendStats: a trend has no %s: want avg, min, med, max, count or p(N)", s)
		}
	}
	p.options = options
	p.runTags = p.registry.Tags(options.Tags)
	p.systemTags = map[string]bool{}
	for _, name := range options.SystemTags {
		p.systemTags[name] = true
	}
	return nil
}

// Options returns the consolidated options. They are not to be changed.
func (p *Program) Options() *Options { return p.options }

// Registry returns the registry that holds all metrics of the script.
func (p *Program) Registry() *results.Registry { return p.registry }

// Exports reports whether the script exports a function of that name.
func (p *Program) Exports(name string) bool { return p.exports[name] }

// tagged reports whether samples are to carry a system tag.
func (p *Program) tagged(name string) bool { return p.systemTags[name] }

// stageTags are the tags outside of scenarios.
func (p *Program) stageTags(group string) *results.Tags {
	if p.tagged("group") {
		return p.runTags.With("group", group)
	}
	return p.runTags
}

// HandleSummaryData is what the script's handleSummary is told.
type HandleSummaryData struct {
	RootGroup any
	Metrics   any
	Duration  time.Duration
	SetupData json.RawMessage
	StdoutTTY bool
	StderrTTY bool
}

// HandleSummary calls the script's handleSummary and returns what it wants
// written: text or bytes by path, "stdout" or "stderr". Without such a
// function it returns nil.
func (p *Program) HandleSummary(ctx context.Context, data HandleSummaryData) (map[string][]byte, error) {
	if !p.exports["handleSummary"] {
		return nil, nil
	}
	v, err := newVM(ctx, p, nil, 0)
	if err != nil {
		return nil, err
	}
	all := map[string]any{"root_group": data.RootGroup, "metrics": data.Metrics, "options": p.options.All,
		"state": map[string]any{"isStdOutTTY": data.StdoutTTY, "isStdErrTTY": data.StderrTTY, "testRunDurationMs": milli(data.Duration)}}
	if data.SetupData != nil {
		all["setup_data"] = data.SetupData
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("encode summary: %w", err)
	}
	limit := p.options.HandleSummaryTimeout
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errorf(ExitTimeout, "handleSummary ran for more than %v", limit))
	defer cancel()
	defer v.end()
	defer v.release()
	result, err := v.run(ctx, func() (sobek.Value, error) {
		return v.function("handleSummary")(sobek.Undefined(), v.parseJSON(text))
	})
	if err != nil {
		return nil, fmt.Errorf("handleSummary: %w", err)
	}
	return v.summaryFiles(result)
}

// summaryFiles reads {path: content}; content that is no text or bytes is
// written as JSON.
func (v *vm) summaryFiles(result sobek.Value) (map[string][]byte, error) {
	if sobek.IsUndefined(result) || sobek.IsNull(result) {
		return map[string][]byte{}, nil
	}
	o, ok := result.(*sobek.Object)
	if !ok {
		return nil, fmt.Errorf("handleSummary: want an object of contents by path, got %s", show(result))
	}
	files := map[string][]byte{}
	for _, path := range o.Keys() {
		content := o.Get(path)
		switch exported := content.Export().(type) {
		case string:
			files[path] = []byte(exported)
		case sobek.ArrayBuffer:
			files[path] = slices.Clone(exported.Bytes())
		case []byte:
			files[path] = slices.Clone(exported)
		default:
			files[path] = []byte(show(content))
		}
	}
	return files, nil
}
