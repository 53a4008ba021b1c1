package node

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/metachaos/metachaos/targets"
)

// state is what the log of a data node adds up to. It is the same on every
// node of a shard that has read as far.
type state struct {
	documents map[targets.Object]map[string]targets.Document
	// copies is the local metadata cache on disk. It is not the ownership
	// list: a restarted node has this and yet knows nothing.
	copies map[targets.Object]targets.Entry
	seeded bool
}

func newState() state {
	return state{documents: map[targets.Object]map[string]targets.Document{}, copies: map[targets.Object]targets.Entry{}}
}

func (s *state) apply(r record) {
	switch r.kind {
	case recordPut:
		of := s.documents[r.object]
		if of == nil {
			of = map[string]targets.Document{}
			s.documents[r.object] = of
		}
		of[r.document.ID] = r.document
	case recordPurge:
		delete(s.documents, r.object)
	case recordEntry:
		s.copies[r.object] = targets.Entry{Object: r.object, Epoch: r.epoch, Owner: r.owner}
	case recordSeeded:
		s.seeded = true
	}
}

// of returns the documents of one object, sorted by id.
func (s *state) of(o targets.Object) []targets.Document {
	return slices.SortedFunc(maps.Values(s.documents[o]), func(a, b targets.Document) int { return strings.Compare(a.ID, b.ID) })
}

// seed returns the records of the documents that the shard holds at first.
func (s Settings) seed(shard string) []record {
	homes := make(map[targets.Object]string, len(s.Objects))
	for i, o := range s.Objects {
		homes[o] = s.home(i)
	}
	var out []record
	for i := range s.Documents {
		key := fmt.Sprintf("item-%d", i)
		o := s.Place(key)
		if homes[o] == shard {
			out = append(out, record{kind: recordPut, object: o,
				document: targets.Document{ID: key, Value: []byte(key + " as loaded"), Version: 1}})
		}
	}
	return append(out, record{kind: recordSeeded})
}
