package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/metachaos/metachaos/internal/experiment"
	"github.com/metachaos/metachaos/load"
	"github.com/metachaos/metachaos/load/script"
	"github.com/metachaos/metachaos/plans"
)

// experimentConfig turns a plan or script and the flags into what an
// experiment needs.
func (a *app) experimentConfig(name string, f runFlags) (experiment.Config, error) {
	c := experiment.Config{Version: readVersion().Version, Logger: a.logger(), Kinds: builtinKinds(a.Err), Faults: builtinFaults}
	var err error
	if c.Journal, err = openJournal(); err != nil {
		return c, err
	}
	if c.Overrides, err = f.overrides(); err != nil {
		return c, withCode(exitConfig, err)
	}
	if isScript(name) {
		err = a.scriptConfig(&c, name)
	} else {
		err = planConfig(&c, name, f)
	}
	if err != nil {
		return c, err
	}
	c.Seed = firstNonZero(f.seed, c.Plan.Seed, rand.Uint64()|1)
	c.Record = f.outDir != ""
	c.Folder, err = runFolder(f.outDir, c.Plan.Name)
	return c, err
}

func isScript(name string) bool {
	switch filepath.Ext(name) {
	case ".js", ".mjs", ".cjs", ".ts", ".mts":
		return true
	}
	return name == "-"
}

// planConfig loads a plan and the script that it names.
func planConfig(c *experiment.Config, name string, f runFlags) error {
	for _, flag := range []string{"vus", "iterations", "duration", "stage"} {
		if f.changed != nil && f.changed(flag) {
			return withCode(exitConfig, fmt.Errorf("--%s changes a script's load and does not go with a plan: the plan's script says how much load there is (use -e for its variables)", flag))
		}
	}
	plan, file, err := plans.LoadFile(name, os.ReadFile)
	var bad plans.Errors
	switch {
	case errors.As(err, &bad):
		return withCode(exitConfig, err)
	case err != nil:
		return err // a missing file or name
	}
	c.Plan, c.PlanText = plan, string(file.Data)
	c.Env = plan.Load.Env
	code, err := file.ReadFile(plan.Load.Script)
	if err != nil {
		return fmt.Errorf("%s: read load.script: %w", file.Path, err)
	}
	base := file.Dir()
	c.Script = script.Source{Path: path.Join(base, filepath.ToSlash(plan.Load.Script)), Code: code,
		ReadFile: func(p string) ([]byte, error) {
			if rel, ok := strings.CutPrefix(p, base+"/"); ok && base != "." {
				p = rel
			}
			return file.ReadFile(p)
		}}
	return nil
}

// scriptConfig wraps a bare script in a plan without a timeline. A fleet that
// it makes gets the target that METACHAOS_TARGET names, or the reference one.
func (a *app) scriptConfig(c *experiment.Config, name string) error {
	c.Plan = &plans.Plan{Version: 1, Name: "stdin", Target: plans.Target{Kind: "reference"}}
	c.Env = environment()
	if kind := os.Getenv("METACHAOS_TARGET"); kind != "" {
		c.Plan.Target.Kind = kind
	}
	c.Script = script.Source{Path: filepath.ToSlash(name), ReadFile: os.ReadFile}
	if name == "-" {
		code, err := io.ReadAll(a.In)
		if err != nil {
			return fmt.Errorf("read the script from standard input: %w", err)
		}
		c.Script.Path, c.Script.Code = "/-", code
		return nil
	}
	c.Plan.Name = strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
	_, err := os.Stat(name)
	if err != nil {
		return fmt.Errorf("read script: %w", err)
	}
	return nil
}

// environment is what a bare script sees as __ENV.
func environment() map[string]string {
	env := map[string]string{}
	for _, pair := range os.Environ() {
		if name, value, ok := strings.Cut(pair, "="); ok {
			env[name] = value
		}
	}
	return env
}

// overrides are the flags that win over a script's options.
func (f runFlags) overrides() (o script.Overrides, err error) {
	changed := func(name string) bool { return f.changed != nil && f.changed(name) }
	if changed("vus") {
		o.VUs = &f.vus
	}
	if changed("iterations") {
		o.Iterations = &f.iterations
	}
	if changed("duration") {
		o.Duration = &f.duration
	}
	for _, text := range f.stages {
		span, target, ok := strings.Cut(text, ":")
		duration, err1 := time.ParseDuration(span)
		vus, err2 := strconv.ParseInt(target, 10, 64)
		if !ok || err1 != nil || err2 != nil {
			return o, fmt.Errorf("bad --stage %q, want DURATION:TARGET, for example 30s:10", text)
		}
		o.Stages = append(o.Stages, load.Stage{Duration: duration, Target: vus})
	}
	if o.Env, err = pairs("env", f.env); err != nil {
		return o, err
	}
	o.Tags, err = pairs("tag", f.tags)
	return o, err
}

func pairs(flag string, list []string) (map[string]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	out := map[string]string{}
	for _, text := range list {
		name, value, _ := strings.Cut(text, "=")
		if name == "" {
			return nil, fmt.Errorf("bad --%s %q, want NAME=VALUE", flag, text)
		}
		out[name] = value
	}
	return out, nil
}

func firstNonZero(values ...uint64) uint64 {
	for _, v := range values {
		if v != 0 {
			return v
		}
	}
	return 0
}

// logger writes what scripts log to standard error.
func (a *app) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: slog.LevelInfo}))
}
