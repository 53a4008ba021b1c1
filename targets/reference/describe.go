package reference

import "github.com/metachaos/metachaos/targets"

// Describe says, without starting anything, what a cluster of processes with
// this configuration is and can do, and which rules it takes.
func Describe(c Config) (targets.Info, []string) {
	return newMembers(c.WithDefaults()).info(targets.CapProcesses, targets.CapProxy), rulesKnown()
}
