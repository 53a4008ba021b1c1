package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/metachaos/metachaos/chaos"
	"github.com/metachaos/metachaos/internal/experiment"
	"github.com/metachaos/metachaos/internal/k6options"
	"github.com/metachaos/metachaos/results/report"
)

// runFlags are the flags of run.
type runFlags struct {
	k6      *k6options.Set
	seed    uint64
	outDir  string
	plugins []string
	json    bool
}

func newRun(a *app) *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run PLAN|SCRIPT",
		Short: "Conduct an experiment, or run a k6 script",
		Long: `run conducts a whole experiment: it starts the target, runs the load, injects the
faults, takes everything down again, and prints a verdict.

PLAN is a YAML file, or the name of a plan that the binary carries (see metachaos
list plans). SCRIPT is a k6 script (.js or .ts, or - for standard input), which
runs without faults.

Exit codes: 0 pass, 99 a threshold or an expectation failed, 104 a plan or option
that cannot be used, 105 stopped by a signal, 107 an exception in the script, 120
inconclusive, 121 a fault could not be shown to be reverted.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.run(c.Context(), args[0], f)
		},
	}
	flags := c.Flags()
	f.k6 = k6options.Flags(flags)
	flags.Uint64Var(&f.seed, "seed", 0, "seed of all random decisions (default: the plan's, or a drawn one)")
	flags.StringVar(&f.outDir, "out-dir", "", "write the run folder here (default: a new one under results/runs)")
	flags.StringArrayVar(&f.plugins, "plugin", nil, "a program, with arguments, that serves faults; repeat for more")
	flags.BoolVar(&f.json, "json", false, "print the verdict as JSON on standard output, and nothing else there")
	return c
}

// run checks, runs, judges and reports.
func (a *app) run(ctx context.Context, name string, f runFlags) error {
	ctx, stopSignals := a.untilSignal(ctx)
	defer stopSignals()
	defer removeEmptyState()
	k6, err := a.openSession(f.k6)
	if err != nil {
		return err
	}
	defer a.close(k6)
	outs, err := a.openOutputs(k6)
	if err != nil {
		return err
	}
	config, err := a.experimentConfig(name, f, k6)
	if err != nil {
		return err
	}
	plugins, err := openPlugins(ctx, f.plugins, a.Err)
	if err != nil {
		return err
	}
	defer plugins.close(ctx)
	config.Faults = plugins.over(builtinFaults)
	p := a.newProgress(k6.Quiet)
	config.Narrate = p.line
	e, err := experiment.Prepare(ctx, config)
	if err != nil {
		return err
	}
	if err := a.recoverLeftovers(ctx, config.Journal); err != nil {
		return err
	}
	if err := outs.start(ctx, e); err != nil {
		return err
	}
	parts := summaryParts(e, k6)
	p.start(e.Snapshot)
	outcome, err := e.Run(ctx)
	p.stop()
	if err := outs.stop(ctx); err != nil {
		k6.Loggers.Log.Error(err.Error())
	}
	if err != nil && !outcome.Recorded {
		return err
	}
	return errors.Join(err, a.conclude(ctx, e, outcome, f, k6, parts))
}

// conclude prints the summary and the verdict, and picks the exit code.
func (a *app) conclude(ctx context.Context, e *experiment.Experiment, o experiment.Outcome, f runFlags, k6 *session, parts *report.Parts) error {
	if err := a.printSummary(ctx, e, o, f, k6, parts); err != nil {
		return err
	}
	code := exitOK
	if o.Recorded {
		v, err := judge(o.Folder)
		if err != nil {
			return err
		}
		if err := a.printVerdict(v, f.json); err != nil {
			return err
		}
		code = exitCode(verdictError(v))
	} else if o.Summary.Crossed() {
		code = exitFailed
	}
	return a.exitOf(o, code)
}

// exitOf lets what is worse than the verdict win over it: a fault that is
// still there, then a signal, then what ended the script.
func (a *app) exitOf(o experiment.Outcome, code int) error {
	if len(o.Stuck) > 0 {
		fmt.Fprintln(a.Err, "metachaos: NOT REVERTED:")
		for _, s := range o.Stuck {
			fmt.Fprintln(a.Err, "  "+s.Error())
		}
		fmt.Fprintln(a.Err, "  metachaos doctor tries again")
		return &silentError{exitNotReverted}
	}
	if o.Err != nil {
		return o.Err
	}
	if code != exitOK {
		return &silentError{code}
	}
	return nil
}

// printSummary prints k6's end-of-test summary, or what the script's
// handleSummary makes of it.
func (a *app) printSummary(ctx context.Context, e *experiment.Experiment, o experiment.Outcome, f runFlags, k6 *session, parts *report.Parts) error {
	style := report.SummaryStyle{Mode: report.SummaryMode(k6.SummaryMode), TimeUnit: summaryTimeUnit(e.Options())}
	if style.Mode == report.SummaryDisabled {
		return nil
	}
	out := a.Out
	if f.json {
		out = a.Err
	}
	files, err := e.HandleSummary(context.WithoutCancel(ctx), o, isTerminal(a.Out), isTerminal(a.Err))
	if err != nil {
		fmt.Fprintln(a.Err, "metachaos:", err) // and the default summary instead, as in k6
	}
	if files == nil {
		style.Colour = wantsColor(out) && !k6.NoColor
		err = style.Write(out, o.Summary, parts.Summary(o.Summary.Elapsed, e.TrendStats()...))
	} else {
		a.writeSummaryFiles(files, out)
	}
	if err == nil && k6.SummaryExport != "" {
		err = exportSummary(k6.SummaryExport, o.Summary)
	}
	return err
}

// summaryParts has the parts of the run measured apart, for the full summary.
func summaryParts(e *experiment.Experiment, k6 *session) *report.Parts {
	parts := report.NewParts(e.Registry())
	if k6.SummaryMode == string(report.SummaryFull) {
		e.AddRecorder(parts)
	}
	return parts
}

// recoverLeftovers takes back what killed runs left before it starts another.
func (a *app) recoverLeftovers(ctx context.Context, j *chaos.Journal) error {
	ctx, cancel := context.WithTimeout(ctx, recoverLimit)
	defer cancel()
	found := chaos.Recover(ctx, j, builtinFaults(nil))
	for _, r := range found {
		fmt.Fprintln(a.Err, "metachaos: found what a killed run left:", r)
	}
	if !allClean(found) {
		return withCode(exitNotReverted, errors.New("something that a killed run left could not be taken back; see above, mend it, and run metachaos doctor"))
	}
	return nil
}
