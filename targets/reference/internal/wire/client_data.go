package wire

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference/internal/node"
	"github.com/metachaos/metachaos/targets/reference/internal/pb"
)

// Node is a client of one data node, by its name: it follows the node to
// whatever address it has.
type Node struct {
	Peers *Peers
	ID    targets.NodeID
}

var (
	_ node.Primary    = Node{}
	_ node.Mover      = Node{}
	_ node.RuleKeeper = Node{}
)

func (n Node) data() (pb.DataClient, error) {
	conn, err := n.Peers.conn(n.ID)
	if err != nil {
		return nil, err
	}
	return pb.NewDataClient(conn), nil
}

// Do performs one operation. Whatever goes wrong becomes the outcome of it.
func (n Node) Do(ctx context.Context, op targets.Op) targets.Reply {
	client, err := n.data()
	if err != nil {
		return targets.Reply{Outcome: targets.Refused, Code: targets.CodeUnavailable, Detail: err.Error(), Node: n.ID, Hops: 1}
	}
	var reached peer.Peer
	reply, err := client.Do(ctx, toOp(op), grpc.Peer(&reached))
	if err == nil {
		return fromReply(reply)
	}
	out := targets.Reply{Detail: err.Error(), Node: n.ID, Hops: 1}
	out.Outcome, out.Code = outcomeOf(ctx, err, reached.Addr != nil)
	return out
}

// outcomeOf says what is known of an operation after a gRPC error. It counts
// as sent once it had a stream on a connection.
func outcomeOf(ctx context.Context, err error, sent bool) (targets.Outcome, targets.Code) {
	code := status.Code(err)
	switch {
	case ctx.Err() != nil || code == codes.DeadlineExceeded:
		return targets.Unknown, targets.CodeTimeout
	case (code == codes.Unavailable || code == codes.Canceled) && !sent:
		return targets.Refused, targets.CodeUnavailable
	case code == codes.Unavailable || code == codes.Canceled:
		return targets.Unknown, targets.CodeConnectionLost
	case code == codes.Unimplemented: // by a node that holds no data
		return targets.Refused, node.CodeInvalid
	}
	return targets.Unknown, targets.CodeInternal
}

// Flush is [node.Primary].
func (n Node) Flush(ctx context.Context, o targets.Object) (int64, error) {
	client, err := n.data()
	if err != nil {
		return 0, err
	}
	reply, err := client.Flush(ctx, &pb.FlushRequest{Object: o.String()})
	return reply.GetPosition(), fromStatus(err)
}

// Tail is [node.Primary].
func (n Node) Tail(ctx context.Context, follower targets.NodeID, from int64, deliver func(frames []byte) error) error {
	client, err := n.data()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the stream
	stream, err := client.Tail(ctx)
	if err != nil {
		return fmt.Errorf("tail: %w", fromStatus(err))
	}
	position := from
	for {
		if err := stream.Send(&pb.TailPosition{Follower: string(follower), Position: position}); err != nil && !ended(err) {
			return fmt.Errorf("tail: %w", fromStatus(err))
		}
		chunk, err := stream.Recv()
		if err != nil {
			return fmt.Errorf("tail: %w", fromStatus(err))
		}
		if err := deliver(chunk.GetFrames()); err != nil {
			return err
		}
		position += int64(len(chunk.GetFrames()))
	}
}

// Hold is [node.Mover].
func (n Node) Hold(ctx context.Context, o targets.Object, token string, lease time.Duration, renew bool) error {
	return n.call(func(c pb.DataClient) error {
		_, err := c.Hold(ctx, &pb.HoldRequest{Object: o.String(), Token: token, LeaseNanos: int64(lease), Renew: renew})
		return err
	})
}

// Release is [node.Mover].
func (n Node) Release(ctx context.Context, o targets.Object, token string) error {
	return n.call(func(c pb.DataClient) error {
		_, err := c.Release(ctx, &pb.ReleaseRequest{Object: o.String(), Token: token})
		return err
	})
}

// Export is [node.Mover].
func (n Node) Export(ctx context.Context, o targets.Object) (documents []targets.Document, err error) {
	err = n.call(func(c pb.DataClient) error {
		reply, err := c.Export(ctx, &pb.ExportRequest{Object: o.String()})
		documents = fromDocuments(reply.GetDocuments())
		return err
	})
	return documents, err
}

// Import is [node.Mover].
func (n Node) Import(ctx context.Context, o targets.Object, documents []targets.Document) error {
	return n.call(func(c pb.DataClient) error {
		_, err := c.Import(ctx, &pb.ImportRequest{Object: o.String(), Documents: toDocuments(documents)})
		return err
	})
}

// Adopt is [node.Mover].
func (n Node) Adopt(ctx context.Context, e targets.Entry) error {
	return n.call(func(c pb.DataClient) error {
		_, err := c.Adopt(ctx, &pb.AdoptRequest{Entry: toEntry(e)})
		return err
	})
}

// Purge is [node.Mover].
func (n Node) Purge(ctx context.Context, o targets.Object) error {
	return n.call(func(c pb.DataClient) error {
		_, err := c.Purge(ctx, &pb.PurgeRequest{Object: o.String()})
		return err
	})
}

func (n Node) call(do func(pb.DataClient) error) error {
	client, err := n.data()
	if err != nil {
		return err
	}
	return fromStatus(do(client))
}

// SetRule is [node.RuleKeeper].
func (n Node) SetRule(ctx context.Context, r targets.Rule) error {
	client, err := n.rules()
	if err != nil {
		return err
	}
	_, err = client.SetRule(ctx, toRule(r))
	return fromStatus(err)
}

// RuleState is [node.RuleKeeper].
func (n Node) RuleState(ctx context.Context, id string) (targets.RuleState, error) {
	client, err := n.rules()
	if err != nil {
		return targets.RuleState{}, err
	}
	s, err := client.GetRule(ctx, &pb.GetRuleRequest{Id: id})
	return targets.RuleState{Armed: s.GetArmed(), Hits: s.GetHits(), Seen: s.GetSeen()}, fromStatus(err)
}

// ClearRule is [node.RuleKeeper].
func (n Node) ClearRule(ctx context.Context, id string) error {
	client, err := n.rules()
	if err != nil {
		return err
	}
	_, err = client.ClearRule(ctx, &pb.ClearRuleRequest{Id: id})
	return fromStatus(err)
}

func (n Node) rules() (pb.RulesClient, error) {
	conn, err := n.Peers.conn(n.ID)
	if err != nil {
		return nil, err
	}
	return pb.NewRulesClient(conn), nil
}

func toRule(r targets.Rule) *pb.SetRuleRequest {
	return &pb.SetRuleRequest{Id: r.ID, Name: r.Name, With: r.With, LeaseNanos: int64(r.Lease), Seed: r.Seed}
}

// fromRule leaves out the selector: who is asked was selected.
func fromRule(r *pb.SetRuleRequest) targets.Rule {
	return targets.Rule{ID: r.GetId(), Name: r.GetName(), With: r.GetWith(), Lease: time.Duration(r.GetLeaseNanos()), Seed: r.GetSeed()}
}
