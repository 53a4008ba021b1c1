package cli

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/metachaos/metachaos/chaos/plugin"
	"github.com/metachaos/metachaos/internal/suggest"
	"github.com/metachaos/metachaos/targets/reference"
)

// nodeCommand is the hidden command that a node process of the reference
// target runs.
const nodeCommand = "node"

func newNode(a *app) *cobra.Command {
	return &cobra.Command{
		Use:    nodeCommand,
		Short:  "Be one node of a reference target (started by metachaos itself)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return reference.NodeMain(c.Context(), a.In, a.Out, a.Err)
		},
	}
}

func newPluginServe(*app) *cobra.Command {
	return &cobra.Command{
		Use:    "plugin-serve FAULT",
		Short:  "Serve a built-in fault as a plugin (started by metachaos itself)",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			all := builtinFaults(nil)
			fault, ok := all[args[0]]
			if !ok {
				return fmt.Errorf("no fault %q: %s", args[0], suggest.Name(args[0], slices.Sorted(maps.Keys(all))))
			}
			return plugin.Serve(fault)
		},
	}
}
