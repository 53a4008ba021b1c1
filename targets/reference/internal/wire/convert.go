// Package wire carries the nodes of the reference cluster over gRPC: servers
// around the nodes, and clients that are the peers which nodes ask for.
package wire

import (
	"time"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference/internal/pb"
)

func object(text string) (targets.Object, error) {
	if text == "" {
		return targets.Object{}, nil
	}
	return targets.ParseObject(text)
}

func objectText(o targets.Object) string {
	if o == (targets.Object{}) {
		return ""
	}
	return o.String()
}

func toEntry(e targets.Entry) *pb.Entry {
	return &pb.Entry{Object: objectText(e.Object), Epoch: uint64(e.Epoch), Owner: e.Owner}
}

func fromEntry(e *pb.Entry) (targets.Entry, error) {
	o, err := object(e.GetObject())
	return targets.Entry{Object: o, Epoch: targets.Epoch(e.GetEpoch()), Owner: e.GetOwner()}, err
}

func toEntries(entries []targets.Entry) []*pb.Entry {
	out := make([]*pb.Entry, len(entries))
	for i, e := range entries {
		out[i] = toEntry(e)
	}
	return out
}

func fromEntries(entries []*pb.Entry) ([]targets.Entry, error) {
	out := make([]targets.Entry, len(entries))
	for i, e := range entries {
		var err error
		if out[i], err = fromEntry(e); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func toDocuments(documents []targets.Document) []*pb.Document {
	// One array for all: a scan returns thousands.
	all := make([]pb.Document, len(documents))
	out := make([]*pb.Document, len(documents))
	for i, d := range documents {
		all[i].Id, all[i].Value, all[i].Version = d.ID, d.Value, d.Version
		out[i] = &all[i]
	}
	return out
}

func fromDocuments(documents []*pb.Document) []targets.Document {
	if len(documents) == 0 {
		return nil
	}
	out := make([]targets.Document, len(documents))
	for i, d := range documents {
		out[i] = targets.Document{ID: d.GetId(), Value: d.GetValue(), Version: d.GetVersion()}
	}
	return out
}

func toOp(op targets.Op) *pb.DoRequest {
	out := &pb.DoRequest{Verb: string(op.Verb), Node: string(op.Node), Object: objectText(op.Object), Key: op.Key,
		Value: op.Value, Epoch: uint64(op.Epoch), Concern: string(op.Concern), Client: op.Client}
	if op.Epochs != nil {
		out.Epochs = make(map[string]uint64, len(op.Epochs))
		for o, e := range op.Epochs {
			out.Epochs[objectText(o)] = uint64(e)
		}
	}
	return out
}

func fromOp(r *pb.DoRequest) (targets.Op, error) {
	o, err := object(r.GetObject())
	if err != nil {
		return targets.Op{}, err
	}
	op := targets.Op{Verb: targets.Verb(r.GetVerb()), Node: targets.NodeID(r.GetNode()), Object: o, Key: r.GetKey(),
		Value: r.GetValue(), Epoch: targets.Epoch(r.GetEpoch()), Concern: targets.Concern(r.GetConcern()), Client: r.GetClient()}
	if r.GetEpochs() != nil {
		op.Epochs = make(map[targets.Object]targets.Epoch, len(r.GetEpochs()))
		for text, e := range r.GetEpochs() {
			o, err := targets.ParseObject(text)
			if err != nil {
				return targets.Op{}, err
			}
			op.Epochs[o] = targets.Epoch(e)
		}
	}
	return op, nil
}

func toReply(r targets.Reply) *pb.DoReply {
	return &pb.DoReply{Outcome: string(r.Outcome), Code: string(r.Code), Detail: r.Detail, Epoch: uint64(r.Epoch),
		Owner: r.Owner, Node: string(r.Node), Shard: r.Shard, Documents: toDocuments(r.Documents),
		RetryAfterNanos: int64(r.RetryAfter)}
}

func fromReply(r *pb.DoReply) targets.Reply {
	return targets.Reply{Outcome: targets.Outcome(r.GetOutcome()), Code: targets.Code(r.GetCode()), Detail: r.GetDetail(),
		Epoch: targets.Epoch(r.GetEpoch()), Owner: r.GetOwner(), Node: targets.NodeID(r.GetNode()), Shard: r.GetShard(),
		Documents: fromDocuments(r.GetDocuments()), Hops: 1, RetryAfter: time.Duration(r.GetRetryAfterNanos())}
}

func toPush(p targets.Push) *pb.Push {
	return &pb.Push{Seq: p.Seq, Entries: toEntries(p.Entries), ExpireInNanos: int64(p.ExpireIn), Heartbeat: p.Heartbeat}
}

func fromPush(p *pb.Push) (targets.Push, error) {
	entries, err := fromEntries(p.GetEntries())
	return targets.Push{Seq: p.GetSeq(), Entries: entries, ExpireIn: time.Duration(p.GetExpireInNanos()),
		Heartbeat: p.GetHeartbeat()}, err
}

func toTruth(t targets.Truth) *pb.Truth {
	return &pb.Truth{AtNanos: int64(t.At), Kind: string(t.Kind), Object: objectText(t.Object), Epoch: uint64(t.Epoch),
		Owner: t.Owner, To: t.To, Cause: string(t.Cause), Stage: string(t.Stage), Lost: t.Lost, Objects: int32(t.Objects)}
}

func fromTruth(t *pb.Truth) (targets.Truth, error) {
	o, err := object(t.GetObject())
	return targets.Truth{At: time.Duration(t.GetAtNanos()), Kind: targets.TruthKind(t.GetKind()), Object: o,
		Epoch: targets.Epoch(t.GetEpoch()), Owner: t.GetOwner(), To: t.GetTo(), Cause: targets.Cause(t.GetCause()),
		Stage: targets.Stage(t.GetStage()), Lost: t.GetLost(), Objects: int(t.GetObjects())}, err
}
