package faults

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/metachaos/metachaos/targets"
)

// selectNodes returns the nodes that the selector means, and refuses to mean
// none, or more than limit.
func selectNodes(t targets.Topology, on targets.Selector, limit int) ([]targets.Node, error) {
	nodes := t.Select(on)
	if len(nodes) == 0 {
		return nil, fmt.Errorf("on: %s selects no node; there are: %s", describe(on), list(t.Nodes))
	}
	if limit > 0 && len(nodes) > limit {
		return nil, fmt.Errorf("on: %s selects %d nodes (%s), and max_nodes is %d: narrow it, or raise max_nodes",
			describe(on), len(nodes), list(nodes), limit)
	}
	return nodes, nil
}

func describe(s targets.Selector) string {
	var parts []string
	add := func(key, value string) {
		if value != "" && value != "0" {
			parts = append(parts, key+": "+value)
		}
	}
	add("node", string(s.Node))
	add("shard", s.Shard)
	add("role", string(s.Role))
	add("index", strconv.Itoa(s.Index))
	return "{" + strings.Join(parts, ", ") + "}"
}

func list(nodes []targets.Node) string {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = string(n.ID)
	}
	return strings.Join(names, ", ")
}

// processOf finds the process that the target declares for a node.
func processOf(all []targets.Process, node targets.NodeID) (targets.Process, bool) {
	for _, p := range all {
		if p.Node == node {
			return p, true
		}
	}
	return targets.Process{}, false
}
