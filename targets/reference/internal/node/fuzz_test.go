package node

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference/internal/wal"
)

func FuzzDecodeRecord(f *testing.F) {
	o := targets.Object{Kind: targets.KindRoute, ID: "r0001"}
	for _, r := range []record{
		{kind: recordPut, object: o, document: targets.Document{ID: "item-1", Value: []byte("v"), Version: 3}},
		{kind: recordPurge, object: o},
		{kind: recordEntry, object: o, epoch: 7, owner: "s2"},
		{kind: recordSeeded},
	} {
		back, err := decodeRecord(r.encode())
		if err != nil || !reflect.DeepEqual(back, r) {
			f.Fatalf("%+v came back as %+v, %v", r, back, err)
		}
		f.Add(r.encode())
	}
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeRecord(b)
		if err != nil {
			return
		}
		if back, err := decodeRecord(r.encode()); err != nil || !reflect.DeepEqual(back, r) {
			t.Fatalf("%+v came back as %+v, %v", r, back, err)
		}
	})
}

// FuzzDo sends hostile operations to a primary: none may be done that no
// honest caller could have sent.
func FuzzDo(f *testing.F) {
	one := targets.Object{Kind: targets.KindRoute, ID: "r0000"}
	settings := Settings{Shards: []string{"s1"}, Replicas: 1, Objects: []targets.Object{one}, Place: func(string) targets.Object { return one },
		Documents: 1, Refresh: ViaPrimary, RefreshLimit: time.Second, Filter: true, Heartbeat: time.Second}
	d, err := NewData(Identity{ID: "s1-0", Shard: "s1", Role: targets.RolePrimary}, settings, &wal.Memory{}, nil, nil)
	if err != nil {
		f.Fatal(err)
	}
	d.list[one] = targets.Entry{Object: one, Epoch: 3, Owner: "s1"}
	f.Add("read", "s1-0", "route/r0000", "item-0", []byte(nil), uint64(3), "local", "route/r0000", uint64(3))
	f.Add("write", "", "", "k", []byte("v"), uint64(0), "", "route/r0000", uint64(9))
	f.Add("scan", "s1-0", "", "", []byte(nil), ^uint64(0), "available", "route/none", ^uint64(0))
	f.Add("drop", "s9-0", "x/y", "", []byte("v"), uint64(1), "hopeful", "q/q", uint64(1))
	f.Fuzz(func(t *testing.T, verb, id, object, key string, value []byte, epoch uint64, concern, scanned string, held uint64) {
		op := targets.Op{Verb: targets.Verb(verb), Node: targets.NodeID(id), Key: key, Value: value,
			Epoch: targets.Epoch(epoch), Concern: targets.Concern(concern)}
		op.Object, _ = targets.ParseObject(object)
		if o, err := targets.ParseObject(scanned); err == nil {
			op.Epochs = map[targets.Object]targets.Epoch{o: targets.Epoch(held)}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r := d.Do(ctx, op)
		switch {
		case r.Outcome != targets.Done && r.Outcome != targets.Refused:
			t.Fatalf("%+v: %+v", op, r)
		case r.Outcome == targets.Refused && r.Code == "":
			t.Fatalf("%+v is refused without a code", op)
		case r.Outcome == targets.Refused || op.Concern == targets.ConcernAvailable && op.Verb != targets.VerbWrite:
		case op.Verb != targets.VerbScan && op.Epoch != 0 && op.Epoch != 3:
			t.Fatalf("%+v was done at epoch 3", op)
		case op.Verb == targets.VerbScan && op.Epochs[one] != 0 && op.Epochs[one] != 3:
			t.Fatalf("%+v was done at epoch 3", op)
		}
	})
}
