package cli

import (
	"errors"
	"fmt"

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
	k6, err := a.openSession(f.k6)
	if err != nil {
		return err
	}
	defer a.close(k6)
	config, err := a.experimentConfig(name, f, k6)
	if err != nil {
		return err
	}
	_, err = experiment.Prepare(c.Context(), config)
	return err
}
