package reference

import "github.com/metachaos/metachaos/targets"

// Describe says, without starting anything, what a cluster of processes with
// this configuration is and can do, which rules it takes, and which nodes it
// will have. The configuration is valid.
func Describe(c Config) (targets.Info, []string, targets.Topology) {
	m := newMembers(c.WithDefaults())
	return m.info(targets.CapProcesses, targets.CapProxy), rulesKnown(), targets.Topology{Nodes: m.nodes}
}
