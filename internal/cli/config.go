package cli

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/metachaos/metachaos/internal/experiment"
	"github.com/metachaos/metachaos/internal/k6options"
	k6http "github.com/metachaos/metachaos/load/modules/http"
	"github.com/metachaos/metachaos/load/script"
	"github.com/metachaos/metachaos/plans"
)

// experimentConfig turns a plan or script and the flags into what an
// experiment needs.
func (a *app) experimentConfig(name string, f runFlags, k6 *session) (experiment.Config, error) {
	if !isScript(name) {
		k6.DropLoad()
	}
	c := experiment.Config{Version: readVersion().Version, Logger: k6.Loggers.Log, Console: k6.Console, Modules: builtinModules(k6.secrets), CheckOptions: k6http.CheckOptions,
		Overrides: k6.Overrides, AllowRemote: k6.AllowRemote, BaseMode: k6.BaseMode, Kinds: builtinKinds(a.Err), Faults: builtinFaults}
	var err error
	if c.Journal, err = openJournal(); err != nil {
		return c, err
	}
	if isScript(name) {
		err = a.scriptConfig(&c, name, k6.Resolved)
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
	if flags := f.k6.LoadFlags(); len(flags) > 0 {
		return withCode(exitConfig, fmt.Errorf("--%s changes a script's load and does not go with a plan: the plan's script says how much load there is (use -e for its variables)", flags[0]))
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
func (a *app) scriptConfig(c *experiment.Config, name string, k6 k6options.Resolved) error {
	c.Plan = &plans.Plan{Version: 1, Name: "stdin", Target: plans.Target{Kind: "reference"}}
	c.Env, c.Defaults = k6.Env, k6.Defaults
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

func firstNonZero(values ...uint64) uint64 {
	for _, v := range values {
		if v != 0 {
			return v
		}
	}
	return 0
}
