package targets

import (
	"fmt"
	"strings"
)

// Kind says what a metadata entry describes.
type Kind string

// The kinds of metadata that clients and nodes cache.
const (
	KindRoute      Kind = "route"      // a range of keys and the shard that owns it
	KindLeader     Kind = "leader"     // a leadership; its epoch is called a term
	KindReplica    Kind = "replica"    // the standing of a replica
	KindSchema     Kind = "schema"     // a schema; its epoch is called an id
	KindQuota      Kind = "quota"      // an admission limit
	KindPermission Kind = "permission" // a grant to a principal
)

// Object names what one metadata entry describes: a shard range, a
// leadership, a schema, a quota, a grant. It is comparable and prints as
// kind/id.
type Object struct {
	Kind Kind
	ID   string
}

// String returns kind/id, the form [ParseObject] reads.
func (o Object) String() string { return string(o.Kind) + "/" + o.ID }

// ParseObject reads the form that [Object.String] prints.
func ParseObject(s string) (Object, error) {
	kind, id, ok := strings.Cut(s, "/")
	if !ok || kind == "" || id == "" {
		return Object{}, fmt.Errorf("parse object %q: want kind/id, for example route/r0001", s)
	}
	return Object{Kind: Kind(kind), ID: id}, nil
}

// MarshalText writes the form that [ParseObject] reads; the zero object is
// empty text.
func (o Object) MarshalText() ([]byte, error) {
	if o == (Object{}) {
		return nil, nil
	}
	return []byte(o.String()), nil
}

// UnmarshalText is the inverse of [Object.MarshalText].
func (o *Object) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*o = Object{}
		return nil
	}
	v, err := ParseObject(string(b))
	*o = v
	return err
}

// Epoch is a version that only grows, counted per object; never a wall-clock
// time. Zero means that none is known or none was sent.
type Epoch uint64

// Entry is one metadata entry as the control plane hands it out.
type Entry struct {
	Object Object
	Epoch  Epoch
	// Owner is the shard (or principal, or value) that the entry names as the
	// owner of the object.
	Owner string
}
