package output

import (
	"maps"
	"slices"

	"github.com/metachaos/metachaos/results"
)

// metadataTags are system tags with a value of its own for nearly every
// sample. Outputs keep them apart from the tags, by which samples are
// grouped.
var metadataTags = [...]string{"iter", "vu", "ip", "ocsp_status"}

// maxRemembered bounds what outputs remember by tag set; beyond it, they
// forget and build anew.
const maxRemembered = 10_000

// tagged is a tag set as outputs show it.
type tagged struct {
	tags, metadata map[string]string
}

func (r Run) split(t *results.Tags) tagged {
	all := tagged{tags: t.Map()}
	for _, name := range metadataTags {
		value, ok := all.tags[name]
		if !ok || !slices.Contains(r.SystemTags, name) {
			continue
		}
		if all.metadata == nil {
			all.metadata = map[string]string{}
		}
		all.metadata[name] = value
		delete(all.tags, name)
	}
	return all
}

// memory remembers what was made of a tag set.
type memory[T any] map[*results.Tags]T

func (m memory[T]) of(t *results.Tags, build func() T) T {
	made, ok := m[t]
	if !ok {
		if len(m) >= maxRemembered {
			clear(m)
		}
		made = build()
		m[t] = made
	}
	return made
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
