package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/metachaos/metachaos/results"
	"github.com/metachaos/metachaos/results/analysis"
	"github.com/metachaos/metachaos/results/report"
)

func newAnalyze(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "analyze DIR",
		Short: "Judge the record of a run again",
		Long: `analyze reads a run folder and judges it by the expectations and thresholds that
it was recorded with. It writes verdict.json, summary.md and junit.xml into the
folder, as the run did, and exits as the run would: 0, 99 or 120.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			v, err := judge(args[0])
			if err != nil {
				return err
			}
			if err := a.printVerdict(v, asJSON); err != nil {
				return err
			}
			return verdictError(v)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the verdict as JSON")
	return c
}

// judge reads a run folder, judges it, and writes the reports into it.
func judge(dir string) (analysis.Verdict, error) {
	run, err := results.Open(dir)
	if err != nil {
		return analysis.Verdict{}, err
	}
	v, err := analysis.Judge(run)
	if err != nil {
		return v, fmt.Errorf("judge %s: %w", dir, err)
	}
	for name, write := range map[string]func(io.Writer, analysis.Verdict) error{
		"verdict.json": report.JSON, "summary.md": report.Markdown, "junit.xml": report.JUnit,
	} {
		if err := writeReport(filepath.Join(dir, name), v, write); err != nil {
			return v, err
		}
	}
	return v, nil
}

func writeReport(path string, v analysis.Verdict, write func(io.Writer, analysis.Verdict) error) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if err := write(f, v); err != nil {
		_ = f.Close()
		return fmt.Errorf("write report %s: %w", path, err)
	}
	return f.Close()
}

func (a *app) printVerdict(v analysis.Verdict, asJSON bool) error {
	if asJSON {
		return report.JSON(a.Out, v)
	}
	if err := report.Text(a.Out, v, report.Style{Color: wantsColor(a.Out), Width: a.width()}); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.Out, "Report: %s\n", filepath.Join(v.Dir, "summary.md"))
	return err
}

// verdictError turns a verdict into the exit code of the command.
func verdictError(v analysis.Verdict) error {
	switch v.Result {
	case analysis.Fail:
		return &silentError{exitFailed}
	case analysis.Inconclusive:
		return &silentError{exitInconclusive}
	case analysis.Pass:
	}
	return nil
}
