package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/metachaos/metachaos/load/script"
)

// Streams are the standard streams of the process.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// app is what commands share.
type app struct {
	Streams
}

// regexpLimit bounds one match of a script's regular expression: nothing else
// can interrupt it.
const regexpLimit = 5 * time.Second

// Main runs the command line and returns the exit code.
func Main(args []string, s Streams) int {
	script.LimitRegexps(regexpLimit)
	root := newRoot(&app{Streams: s})
	root.SetArgs(args)
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	err := root.Execute()
	var silent *silentError
	if err != nil && !errors.As(err, &silent) {
		fmt.Fprintln(s.Err, "metachaos:", err)
	}
	return exitCode(err)
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "metachaos",
		Short: "Load-testing and chaos for metadata caches",
		Long: `metachaos finds out, before production does, what a metadata cache does when
pushes are lost, TTLs line up and a primary freezes.

A k6 script generates reads and writes that carry epochs, a timeline injects
faults into the target, and analyzers judge what was recorded.

  metachaos run quickstart        a plan that the binary carries
  metachaos run plan.yaml         a plan of your own
  metachaos run script.js         a k6 script, without faults`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fmt.Errorf("%w (see %s --help)", err, c.CommandPath())
	})
	root.AddCommand(
		newRun(a), newValidate(a), newAnalyze(a), newList(a), newTarget(a), newDoctor(a), newVersion(a),
		newNode(a), newPluginServe(a), newTargetKeep(a),
	)
	return root
}

// isTerminal reports whether w is a terminal that understands cursor moves.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// wantsColor follows https://no-color.org.
func wantsColor(w io.Writer) bool { return isTerminal(w) && os.Getenv("NO_COLOR") == "" }

// width is the width of standard output in columns; 0 when it is no terminal.
func (a *app) width() int {
	if f, ok := a.Out.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil {
			return w
		}
	}
	return 0
}
