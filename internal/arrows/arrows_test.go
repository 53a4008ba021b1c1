package arrows

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/metachaos/metachaos"

// allowed says which packages of ours a package may import. A key or value
// that ends in /... covers the folder and everything below it. A package may
// always import what lies below itself in an internal folder.
var allowed = map[string][]string{
	"plans":                 {},
	"targets":               {},
	"targets/reference/...": {"targets", "targets/reference/..."},
	"targets/targettest":    {"targets"},
	"chaos":                 {"targets"},
	"chaos/internal/with":   {},
	"chaos/faults":          {"chaos", "chaos/proxy", "targets"},
	"chaos/proxy":           {"chaos", "targets"},
	"chaos/plugin/...":      {"chaos", "chaos/internal/with", "chaos/plugin/...", "targets"},
	"chaos/chaostest":       {"chaos", "chaos/internal/with", "targets"},
	"load":                  {},
	"load/script":           {"load", "results", "results/stats"},
	"load/modules/...":      {"load/script", "load/modules/...", "results"},
	"xk6-metacache":         {"load/script", "targets", "results", "xk6-metacache/fleet", "xk6-metacache/client"},
	"xk6-metacache/client":  {"targets"},
	"xk6-metacache/fleet":   {"targets", "xk6-metacache/client"},
	"results":               {"targets", "chaos"},
	"results/stats":         {},
	"results/analysis":      {"results", "results/stats", "targets", "chaos"},
	"results/output":        {"results", "results/stats"},
	"results/report":        {"results", "results/analysis", "results/stats"},
	"internal/suggest":      {},
	"internal/arrows":       {},
	"internal/k6cases":      {},
	"internal/k6options":    {"load", "load/script"},
	"internal/experiment":   {"plans", "targets", "chaos", "load", "load/script", "xk6-metacache", "results", "results/stats", "results/analysis"},
	"internal/cli":          {"..."},
	"cmd/metachaos":         {"internal/cli"},
}

// everywhere may be imported by any package: leaves that are no part of the
// domain.
var everywhere = []string{"internal/suggest"}

// forbidden third-party modules, wherever they would stand.
var forbidden = []string{"go.k6.io/", "github.com/grafana/xk6"}

type pkg struct {
	ImportPath string
	Imports    []string
}

func TestImportsFollowTheArrows(t *testing.T) {
	pkgs := list(t)
	if len(pkgs) < len(allowed)/2 {
		t.Fatalf("go list found only %d packages", len(pkgs))
	}
	for _, p := range pkgs {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		rule, known := ruleOf(name)
		if !known {
			t.Errorf("package %s has no row in the table of arrows: give it one", name)
			continue
		}
		for _, imported := range p.Imports {
			if slices.ContainsFunc(forbidden, func(f string) bool { return strings.HasPrefix(imported, f) }) {
				t.Errorf("%s imports %s, which the licence wall forbids", name, imported)
			}
			ours, ok := strings.CutPrefix(imported, module+"/")
			if ok && !slices.Contains(everywhere, ours) && !slices.ContainsFunc(rule, func(pattern string) bool { return matches(pattern, ours) }) {
				t.Errorf("%s imports %s, against the arrows: it may import %v", name, ours, rule)
			}
		}
	}
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"chaos", "chaos", true},
		{"chaos", "chaos/proxy", false},
		{"chaos/...", "chaos/proxy", true},
		{"chaos/...", "chaos", true},
		{"chaos/...", "chaosmonkey", false},
		{"...", "anything/at/all", true},
	} {
		if got := matches(c.pattern, c.name); got != c.want {
			t.Errorf("matches(%q, %q) = %v", c.pattern, c.name, got)
		}
	}
}

// ruleOf returns the row of a package: its own, or that of the nearest folder
// above it with a row for everything below.
func ruleOf(name string) ([]string, bool) {
	if rule, ok := allowed[name]; ok {
		return rule, true
	}
	for dir := name; dir != "."; dir = path.Dir(dir) {
		if rule, ok := allowed[dir+"/..."]; ok {
			return rule, true
		}
	}
	return nil, false
}

func matches(pattern, name string) bool {
	if pattern == "..." {
		return true
	}
	if dir, ok := strings.CutSuffix(pattern, "/..."); ok {
		return name == dir || strings.HasPrefix(name, dir+"/")
	}
	return pattern == name
}

func list(t *testing.T) (out []pkg) {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", module+"/...")
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	for dec := json.NewDecoder(bytes.NewReader(stdout)); ; {
		var p pkg
		switch err := dec.Decode(&p); {
		case errors.Is(err, io.EOF):
			return out
		case err != nil:
			t.Fatal(err)
		}
		out = append(out, p)
	}
}
