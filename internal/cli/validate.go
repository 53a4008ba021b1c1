package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/metachaos/metachaos/internal/experiment"
	"github.com/metachaos/metachaos/internal/k6options"
	"github.com/metachaos/metachaos/plans"
)

func newValidate(a *app) *cobra.Command {
	var schema bool
	c := &cobra.Command{
		Use:   "validate PLAN|SCRIPT…",
		Short: "Check plans and scripts without starting anything",
		Long: `validate checks everything that run checks before it starts: the plan, the
configuration of its target and faults, whether the target can do what the faults
need, the expectations, and the script, whose init code it runs.

With --schema it prints the JSON Schema of plans, for editors.`,
		RunE: func(c *cobra.Command, args []string) error {
			if schema {
				s, err := plans.Schema()
				if err != nil {
					return err
				}
				_, err = a.Out.Write(s)
				return err
			}
			if len(args) == 0 {
				return errors.New("name at least one plan or script")
			}
			var errs []error
			for _, name := range args {
				if err := a.validate(c, name); err != nil {
					errs = append(errs, err)
					continue
				}
				fmt.Fprintf(a.Out, "%s: ok\n", name)
			}
			return errors.Join(errs...)
		},
	}
	c.Flags().BoolVar(&schema, "schema", false, "print the JSON Schema of plans")
	return c
}

func (a *app) validate(c *cobra.Command, name string) error {
	f := runFlags{k6: k6options.Flags(pflag.NewFlagSet("none", pflag.ContinueOnError))}
	k6, err := f.k6.Resolve(os.Environ(), os.ReadFile)
	if err != nil {
		return err
	}
	loggers, err := k6.Log.Open(k6options.Streams{Stdout: a.Out, Stderr: a.Err, Append: appendFile}, nil)
	if err != nil {
		return err
	}
	defer loggers.Close()
	config, err := a.experimentConfig(name, f, k6, loggers)
	if err != nil {
		return err
	}
	_, err = experiment.Prepare(c.Context(), config)
	return err
}
