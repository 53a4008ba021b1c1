package reference

import (
	"fmt"
	"hash/fnv"

	"github.com/metachaos/metachaos/targets"
)

// Objects are the objects of a cluster, in order: route/r0000, route/r0001, …
type Objects []targets.Object

// NewObjects returns n objects.
func NewObjects(n int) Objects {
	out := make(Objects, n)
	for i := range out {
		out[i] = objectAt(i)
	}
	return out
}

// For returns the object that key belongs to. The objects must not be none.
func (o Objects) For(key string) targets.Object { return o[slot(key, len(o))] }

// ObjectFor returns the object that key belongs to in a cluster of n objects,
// n > 0.
func ObjectFor(key string, n int) targets.Object { return objectAt(slot(key, n)) }

func objectAt(i int) targets.Object {
	return targets.Object{Kind: targets.KindRoute, ID: fmt.Sprintf("r%04d", i)}
}

func slot(key string, n int) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key)) // a hash takes everything
	sum := h.Sum64()
	return int((sum ^ sum>>32) % uint64(n))
}
