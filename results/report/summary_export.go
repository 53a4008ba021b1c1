package report

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/metachaos/metachaos/results"
	"github.com/metachaos/metachaos/results/analysis"
)

// exportedGroup is a group in the exported summary: what it holds by name.
type exportedGroup struct {
	Name   string                   `json:"name"`
	Path   string                   `json:"path"`
	ID     string                   `json:"id"`
	Groups map[string]exportedGroup `json:"groups"`
	Checks map[string]exportedCheck `json:"checks"`
}

type exportedCheck struct {
	Name   string `json:"name"`
	Path   string `json:"path"`
	ID     string `json:"id"`
	Passes uint64 `json:"passes"`
	Fails  uint64 `json:"fails"`
}

// SummaryExport writes a summary as JSON in the form of k6's --summary-export:
// each metric is a flat object of its statistics, the threshold booleans say
// whether a threshold was crossed, and root_group is the tree of groups and
// checks by name.
func SummaryExport(w io.Writer, s analysis.Summary) error {
	metrics := make(map[string]map[string]any, len(s.Metrics))
	for _, m := range s.Metrics {
		metrics[m.Name] = exportMetric(m)
	}
	root := &analysis.Group{}
	if s.Root != nil {
		root = s.Root
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false) // names of thresholds are full of < and >
	e.SetIndent("", "    ")
	if err := e.Encode(map[string]any{"root_group": exportGroup(root), "metrics": metrics}); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	return nil
}

func exportMetric(m analysis.MetricSummary) map[string]any {
	out := make(map[string]any, len(m.Values)+1)
	for _, v := range m.Values {
		name := v.Name
		if m.Type == results.Rate && name == "rate" {
			name = "value"
		}
		out[name] = finite(v.Value)
	}
	if len(m.Thresholds) > 0 {
		crossed := make(map[string]bool, len(m.Thresholds))
		for _, t := range m.Thresholds {
			crossed[t.Source] = !t.OK
		}
		out["thresholds"] = crossed
	}
	return out
}

// finite returns what JSON can hold of a number: infinities and NaN are null.
func finite(v float64) any {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return v
}

func exportGroup(g *analysis.Group) exportedGroup {
	out := exportedGroup{Name: g.Name, Path: g.Path, ID: pathID(g.Path), Groups: map[string]exportedGroup{}, Checks: map[string]exportedCheck{}}
	for _, inner := range g.Groups {
		out.Groups[inner.Name] = exportGroup(inner)
	}
	for _, c := range g.Checks {
		out.Checks[c.Name] = exportedCheck{Name: c.Name, Path: c.Path, ID: pathID(c.Path), Passes: c.Passes, Fails: c.Fails}
	}
	return out
}

// pathID is the short form of a path: its MD5, which is no secret.
func pathID(path string) string {
	sum := md5.Sum([]byte(path))
	return hex.EncodeToString(sum[:])
}
