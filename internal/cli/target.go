package cli

import "github.com/spf13/cobra"

func newTarget(a *app) *cobra.Command {
	return &cobra.Command{Use: "target", Hidden: true}
}
