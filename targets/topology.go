package targets

import "slices"

// NodeID names one node of a target, for example "s1-0" or "control".
type NodeID string

// Role is what a node does in its cluster.
type Role string

// The roles of nodes.
const (
	RoleControl   Role = "control"   // the source of truth
	RolePrimary   Role = "primary"   // takes writes for its shard
	RoleSecondary Role = "secondary" // replicates its primary and may serve reads
	RoleRouter    Role = "router"    // routes on behalf of clients
)

// Node is one member of a cluster.
type Node struct {
	ID    NodeID `json:"id"`
	Shard string `json:"shard,omitempty"` // empty for the control plane and routers
	Role  Role   `json:"role"`
	Index int    `json:"index"`          // counts from 1 among the nodes of one role in one shard
	Addr  string `json:"addr,omitempty"` // host:port; empty in memory
	PID   int    `json:"pid,omitempty"`  // 0 when the node is no process of its own
}

// Topology is the membership of a target at one moment.
type Topology struct {
	Nodes []Node `json:"nodes"`
	// Objects lists the objects that keys map to, in a stable order.
	Objects []Object `json:"objects,omitempty"`
	// Documents is the number of documents loaded before the run. They are
	// named item-0, item-1, …, and are never deleted, so that a scatter read
	// that lacks one of them has lost it.
	Documents int `json:"documents,omitempty"`
}

// Select returns the nodes that match every field set in s, in the
// topology's order.
func (t Topology) Select(s Selector) []Node {
	var out []Node
	for _, n := range t.Nodes {
		if s.Matches(n) {
			out = append(out, n)
		}
	}
	return out
}

// Shards returns the names of the shards, sorted.
func (t Topology) Shards() []string {
	var out []string
	for _, n := range t.Nodes {
		if n.Shard != "" && !slices.Contains(out, n.Shard) {
			out = append(out, n.Shard)
		}
	}
	slices.Sort(out)
	return out
}

// Node returns the node with that id.
func (t Topology) Node(id NodeID) (Node, bool) {
	for _, n := range t.Nodes {
		if n.ID == id {
			return n, true
		}
	}
	return Node{}, false
}

// Selector picks nodes. Empty fields match anything.
type Selector struct {
	Node  NodeID `json:"node,omitempty"`
	Shard string `json:"shard,omitempty"`
	Role  Role   `json:"role,omitempty"`
	Index int    `json:"index,omitempty"` // counts from 1; 0 matches any
}

// Matches reports whether n has every property that s names.
func (s Selector) Matches(n Node) bool {
	return (s.Node == "" || s.Node == n.ID) &&
		(s.Shard == "" || s.Shard == n.Shard) &&
		(s.Role == "" || s.Role == n.Role) &&
		(s.Index == 0 || s.Index == n.Index)
}
