package node

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/metachaos/metachaos/targets"
)

// recordKind is the first byte of a record in the log of a data node.
type recordKind byte

const (
	recordPut    recordKind = 1 // a document was written
	recordPurge  recordKind = 2 // the documents of an object were deleted
	recordEntry  recordKind = 3 // an entry was written to the local metadata cache
	recordSeeded recordKind = 4 // the loaded documents are complete
)

// record is one write of a data node. Which fields count depends on the kind.
type record struct {
	kind     recordKind
	object   targets.Object
	document targets.Document
	epoch    targets.Epoch
	owner    string
}

var errRecord = errors.New("malformed record")

// encode returns the form that decodeRecord reads: the kind, then every field
// of that kind as an unsigned varint or a length and bytes.
func (r record) encode() []byte {
	b := []byte{byte(r.kind)}
	if r.kind == recordSeeded {
		return b
	}
	b = appendText(b, string(r.object.Kind))
	b = appendText(b, r.object.ID)
	switch r.kind {
	case recordPut:
		b = appendText(b, r.document.ID)
		b = binary.AppendUvarint(b, r.document.Version)
		b = appendText(b, string(r.document.Value))
	case recordEntry:
		b = binary.AppendUvarint(b, uint64(r.epoch))
		b = appendText(b, r.owner)
	default: // the object is all
	}
	return b
}

// decodeRecord is the inverse of encode. The record keeps no part of b.
func decodeRecord(b []byte) (record, error) {
	if len(b) == 0 {
		return record{}, errRecord
	}
	r := record{kind: recordKind(b[0])}
	d := decoder{rest: b[1:]}
	switch r.kind {
	case recordSeeded:
	case recordPut, recordPurge, recordEntry:
		r.object = targets.Object{Kind: targets.Kind(d.text()), ID: string(d.text())}
		switch r.kind {
		case recordPut:
			r.document = targets.Document{ID: string(d.text()), Version: d.number()}
			r.document.Value = append([]byte(nil), d.text()...)
		case recordEntry:
			r.epoch, r.owner = targets.Epoch(d.number()), string(d.text())
		default: // the object is all
		}
	default:
		return record{}, fmt.Errorf("%w: unknown kind %d", errRecord, b[0])
	}
	if d.bad || len(d.rest) > 0 {
		return record{}, errRecord
	}
	return r, nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// decoder remembers the first failure, so that callers check once.
type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) number() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.bad, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) text() []byte {
	size := d.number()
	if size > uint64(len(d.rest)) {
		d.bad, d.rest = true, nil
		return nil
	}
	out := d.rest[:size]
	d.rest = d.rest[size:]
	return out
}
