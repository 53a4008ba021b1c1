package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/metachaos/metachaos/internal/experiment"
	"github.com/metachaos/metachaos/load/script"
	"github.com/metachaos/metachaos/results/analysis"
	"github.com/metachaos/metachaos/results/output"
	"github.com/metachaos/metachaos/results/report"
)

// outputLimit bounds how long outputs may take to write the last samples.
const outputLimit = 30 * time.Second

// outputs are where samples go beside the run folder.
type outputs []output.Output

// openOutputs checks what --out asks for. Nothing is touched before start.
func (a *app) openOutputs(k *session) (outputs, error) {
	var all outputs
	for _, spec := range k.Outputs {
		o, err := output.Open(spec, output.Env{Lookup: k.Lookup, Stdout: a.Out, Logger: k.Loggers.Log, Version: readVersion().Version})
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}

// start starts all of them and has them fed by the experiment.
func (all outputs) start(ctx context.Context, e *experiment.Experiment) error {
	o := e.Options()
	run := output.Run{Base: e.Base().Wall(), SystemTags: o.SystemTags, Watched: watched(o)}
	for i, out := range all {
		if err := out.Start(ctx, run); err != nil {
			_ = all[:i].stop(ctx) // nothing was recorded yet
			return err
		}
		e.AddRecorder(out)
	}
	return nil
}

// stop writes what is left.
func (all outputs) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), outputLimit)
	defer cancel()
	var first error
	for _, o := range all {
		if err := o.Stop(ctx); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// watched are the metrics with thresholds, and the sub-metric that is always
// there.
func watched(o *script.Options) []output.Watched {
	const implied = "http_req_duration{expected_response:true}"
	var all []output.Watched
	add := func(name string, thresholds []script.Threshold) {
		sel, err := analysis.ParseSelector(name)
		if err != nil {
			return // the thresholds were checked before
		}
		w := output.Watched{Metric: sel.Metric, Name: name, Tags: sel.Tags}
		for _, t := range thresholds {
			w.Thresholds = append(w.Thresholds, output.Threshold(t))
		}
		all = append(all, w)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Thresholds)) {
		add(name, o.Thresholds[name])
	}
	if _, ok := o.Thresholds[implied]; !ok {
		add(implied, nil)
	}
	return all
}

// summaryTimeUnit is the unit of times that the script asks for, or empty.
func summaryTimeUnit(o *script.Options) string {
	var unit string
	if raw, ok := o.All["summaryTimeUnit"]; ok {
		_ = json.Unmarshal(raw, &unit) // what is no text asks for no unit
	}
	return unit
}

// exportSummary writes the summary as k6's --summary-export does.
func exportSummary(path string, s analysis.Summary) error {
	var b bytes.Buffer
	if err := report.SummaryExport(&b, s); err != nil {
		return err
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("export summary: %w", err)
	}
	return nil
}

func appendFile(path string) (io.WriteCloser, error) {
	return os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
}
