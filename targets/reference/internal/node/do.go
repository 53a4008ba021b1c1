package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/metachaos/metachaos/targets"
)

const (
	maxKey   = 1 << 10 // bytes
	maxValue = 1 << 20

	refreshHint   = 20 * time.Millisecond // a refresh over healthy nodes takes a few
	migratingHint = 50 * time.Millisecond
)

// Do performs one operation. A write returns when it is in the local log.
func (d *Data) Do(ctx context.Context, op targets.Op) targets.Reply {
	if problem := d.invalid(&op); problem != "" {
		return d.refuse(CodeInvalid, targets.Entry{}, problem)
	}
	switch op.Verb {
	case targets.VerbWrite:
		return d.write(ctx, op)
	case targets.VerbScan:
		return d.scan(op)
	default:
		return d.read(op)
	}
}

// invalid says what is wrong with an operation, and fills in the object that
// its key belongs to.
func (d *Data) invalid(op *targets.Op) string {
	switch op.Concern {
	case "", targets.ConcernLocal, targets.ConcernMajority, targets.ConcernAvailable:
	default:
		return fmt.Sprintf("read concern %.40q: want local, majority or available", op.Concern)
	}
	if op.Node != "" && op.Node != d.self.ID {
		return fmt.Sprintf("the operation is for node %.40q and came to %s", op.Node, d.self.ID)
	}
	switch op.Verb {
	case targets.VerbScan:
		for o := range op.Epochs {
			if _, ok := d.known[o]; !ok {
				return fmt.Sprintf("there is no object %.40q", o)
			}
		}
		return ""
	case targets.VerbRead, targets.VerbWrite:
	default:
		return fmt.Sprintf("verb %.40q: want read, write or scan", op.Verb)
	}
	if op.Key == "" || len(op.Key) > maxKey || len(op.Value) > maxValue {
		return fmt.Sprintf("a key has 1 to %d bytes and a value at most %d; these have %d and %d",
			maxKey, maxValue, len(op.Key), len(op.Value))
	}
	home := d.settings.Place(op.Key)
	if op.Object != (targets.Object{}) && op.Object != home {
		return fmt.Sprintf("key %.40q belongs to %s and not to %.40q", op.Key, home, op.Object)
	}
	op.Object = home
	return ""
}

func (d *Data) read(op targets.Op) targets.Reply {
	d.mu.RLock()
	defer d.mu.RUnlock()
	held, known := d.list[op.Object]
	owned := true
	switch {
	case op.Concern == targets.ConcernAvailable:
	case op.Epoch != 0:
		if code := check(held, known, op.Epoch, d.self.Shard); code != "" {
			return d.refuseObject(op.Object, code, held)
		}
	case d.settings.Filter:
		if !known {
			return d.refuseObject(op.Object, targets.CodeUnknownOwnership, held)
		}
		owned = held.Owner == d.self.Shard
	}
	r := d.done(op, held)
	if doc, ok := d.state.documents[op.Object][op.Key]; ok && owned {
		r.Documents = []targets.Document{doc}
	}
	return r
}

// scan returns every document that the node holds and, by its list, owns. The
// objects that the caller sent epochs for are checked like single reads.
func (d *Data) scan(op targets.Op) targets.Reply {
	d.mu.RLock()
	defer d.mu.RUnlock()
	available := op.Concern == targets.ConcernAvailable
	var refusal targets.Reply
	refuse := func(o targets.Object, code targets.Code, held targets.Entry) {
		// All are looked at, so that one scan starts every refresh it needs.
		if r := d.refuseObject(o, code, held); refusal.Outcome == "" {
			refusal = r
		}
	}
	r := d.done(op, targets.Entry{})
	for _, o := range d.settings.Objects {
		held, known := d.list[o]
		if sent := op.Epochs[o]; sent != 0 && !available {
			// That another shard owns the object at this epoch is what the
			// filter is for.
			if code := check(held, known, sent, held.Owner); code != "" {
				refuse(o, code, held)
				continue
			}
		}
		if d.settings.Filter && !available {
			if !known {
				refuse(o, targets.CodeUnknownOwnership, held)
				continue
			}
			if held.Owner != d.self.Shard {
				continue
			}
		}
		for _, doc := range d.state.documents[o] {
			r.Documents = append(r.Documents, doc)
		}
	}
	if refusal.Outcome != "" {
		return refusal
	}
	return r
}

// write checks before the gate, as a server looks at a request before its
// storage engine does, and again after it, because a gate can be shut for long.
func (d *Data) write(ctx context.Context, op targets.Op) targets.Reply {
	d.mu.Lock()
	_, refusal := d.admit(op)
	d.mu.Unlock()
	if refusal.Outcome != "" {
		return refusal
	}
	// A write whose caller has gone while it was held is dropped. Its caller
	// has counted it as unknown and may have written anew; a late write would
	// undo that, which a storage engine that stalls under a session does not:
	// it ends the operations of sessions that are gone.
	if err := d.passGate(ctx); err != nil {
		if errors.Is(err, ErrStopping) {
			return d.refuse(targets.CodeUnavailable, targets.Entry{}, err.Error())
		}
		return targets.Reply{Outcome: targets.Unknown, Code: targets.CodeTimeout, Detail: "held by the write path: " + err.Error(),
			Node: d.self.ID, Shard: d.self.Shard, Hops: 1}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	held, refusal := d.admit(op)
	if refusal.Outcome != "" {
		return refusal
	}
	doc := targets.Document{ID: op.Key, Value: bytes.Clone(op.Value), Version: d.state.documents[op.Object][op.Key].Version + 1}
	if _, err := d.append(record{kind: recordPut, object: op.Object, document: doc}); err != nil {
		return targets.Reply{Outcome: targets.Unknown, Code: targets.CodeInternal, Detail: err.Error(),
			Node: d.self.ID, Shard: d.self.Shard, Hops: 1}
	}
	r := d.done(op, held)
	r.Documents = []targets.Document{{ID: doc.ID, Version: doc.Version}}
	return r
}

// admit says whether a write may go on now. The caller holds the lock.
func (d *Data) admit(op targets.Op) (held targets.Entry, refusal targets.Reply) {
	migrating := d.migrating(op.Object)
	held, known := d.list[op.Object]
	if !d.isPrimary() {
		return held, d.refuse(targets.CodeNotPrimary, held, "writes go to the primary of the shard")
	}
	if op.Epoch != 0 {
		if code := check(held, known, op.Epoch, d.self.Shard); code != "" {
			return held, d.refuseObject(op.Object, code, held)
		}
	}
	if migrating {
		r := d.refuse(targets.CodeMigrating, held, "the object is being handed over")
		r.RetryAfter = migratingHint
		return held, r
	}
	return held, targets.Reply{}
}

// done is the answer to an operation that was served; documents are added.
func (d *Data) done(op targets.Op, held targets.Entry) targets.Reply {
	r := targets.Reply{Outcome: targets.Done, Node: d.self.ID, Shard: d.self.Shard, Hops: 1}
	if op.Epoch != 0 && (op.Verb == targets.VerbWrite || op.Concern != targets.ConcernAvailable) {
		r.Epoch, r.Owner = held.Epoch, held.Owner
	}
	return r
}

func (d *Data) refuse(code targets.Code, held targets.Entry, detail string) targets.Reply {
	return targets.Reply{Outcome: targets.Refused, Code: code, Detail: detail, Epoch: held.Epoch, Owner: held.Owner,
		Node: d.self.ID, Shard: d.self.Shard, Hops: 1}
}

// refuseObject refuses by the version check and, where the node itself is
// behind, starts its refresh.
func (d *Data) refuseObject(o targets.Object, code targets.Code, held targets.Entry) targets.Reply {
	r := d.refuse(code, held, o.String())
	if mustRefresh(code) {
		r.RetryAfter = refreshHint
		if failure := d.flights.lastFailure(o); failure != "" {
			r.Detail += "; " + failure
		}
		d.flights.start(o)
	}
	return r
}
