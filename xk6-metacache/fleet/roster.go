package fleet

import "github.com/metachaos/metachaos/targets"

// roster says which nodes of a shard take operations.
type roster map[string]posts

type posts struct{ readers, writers []targets.NodeID }

// newRoster sends writes to the primaries, and reads where the preference
// says. Where a shard has no such node, any of its nodes will do.
func newRoster(t targets.Topology, p targets.Preference) roster {
	r := roster{}
	for _, shard := range t.Shards() {
		pick := func(role targets.Role) (ids []targets.NodeID) {
			nodes := t.Select(targets.Selector{Shard: shard, Role: role})
			if len(nodes) == 0 {
				nodes = t.Select(targets.Selector{Shard: shard})
			}
			for _, n := range nodes {
				ids = append(ids, n.ID)
			}
			return ids
		}
		r[shard] = posts{readers: pick(targets.RolePrimary), writers: pick(targets.RolePrimary)}
		if p == targets.PreferSecondary {
			r[shard] = posts{readers: pick(targets.RoleSecondary), writers: pick(targets.RolePrimary)}
		}
	}
	return r
}

// node picks one of the nodes of a shard that take a verb, with the dice of
// the client m. A shard that the topology does not know is asked for by its
// name, so that the target says what it thinks of it.
func (r roster) node(m *member, shard string, verb targets.Verb) targets.NodeID {
	posts, ok := r[shard]
	nodes := posts.readers
	if verb == targets.VerbWrite {
		nodes = posts.writers
	}
	switch {
	case !ok:
		return targets.NodeID(shard)
	case len(nodes) == 1:
		return nodes[0]
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return nodes[m.rng.IntN(len(nodes))]
}
