package wire

import (
	"context"
	"time"

	"google.golang.org/grpc"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference/internal/node"
	"github.com/metachaos/metachaos/targets/reference/internal/pb"
)

type dataServer struct {
	pb.UnimplementedDataServer
	data *node.Data
}

func (s dataServer) Do(ctx context.Context, r *pb.DoRequest) (*pb.DoReply, error) {
	op, err := fromOp(r)
	if err != nil {
		return &pb.DoReply{Outcome: string(targets.Refused), Code: string(node.CodeInvalid), Detail: err.Error(), Node: r.GetNode()}, nil //nolint:nilerr // a refusal is an answer
	}
	return toReply(s.data.Do(ctx, op)), nil
}

func (s dataServer) Flush(ctx context.Context, r *pb.FlushRequest) (*pb.FlushReply, error) {
	o, err := targets.ParseObject(r.GetObject())
	if err != nil {
		return nil, toStatus(err)
	}
	position, err := s.data.Flush(ctx, o)
	return &pb.FlushReply{Position: position}, toStatus(err)
}

// Tail sends a chunk and waits for its acknowledgement, so that the primary
// knows what its followers have. Chunks grow when the follower is behind.
func (s dataServer) Tail(stream grpc.BidiStreamingServer[pb.TailPosition, pb.TailChunk]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	err = s.data.Tail(stream.Context(), targets.NodeID(first.GetFollower()), first.GetPosition(), func(frames []byte) error {
		if err := stream.Send(&pb.TailChunk{Frames: frames}); err != nil {
			return err
		}
		_, err := stream.Recv()
		return err
	})
	if ended(err) {
		return nil
	}
	return toStatus(err)
}

func (s dataServer) Hold(ctx context.Context, r *pb.HoldRequest) (*pb.HoldReply, error) {
	o, err := targets.ParseObject(r.GetObject())
	if err != nil {
		return nil, toStatus(err)
	}
	return &pb.HoldReply{}, toStatus(s.data.Hold(ctx, o, r.GetToken(), time.Duration(r.GetLeaseNanos()), r.GetRenew()))
}

func (s dataServer) Release(ctx context.Context, r *pb.ReleaseRequest) (*pb.ReleaseReply, error) {
	o, err := targets.ParseObject(r.GetObject())
	if err != nil {
		return nil, toStatus(err)
	}
	return &pb.ReleaseReply{}, toStatus(s.data.Release(ctx, o, r.GetToken()))
}

func (s dataServer) Export(ctx context.Context, r *pb.ExportRequest) (*pb.ExportReply, error) {
	o, err := targets.ParseObject(r.GetObject())
	if err != nil {
		return nil, toStatus(err)
	}
	documents, err := s.data.Export(ctx, o)
	return &pb.ExportReply{Documents: toDocuments(documents)}, toStatus(err)
}

func (s dataServer) Import(ctx context.Context, r *pb.ImportRequest) (*pb.ImportReply, error) {
	o, err := targets.ParseObject(r.GetObject())
	if err != nil {
		return nil, toStatus(err)
	}
	return &pb.ImportReply{}, toStatus(s.data.Import(ctx, o, fromDocuments(r.GetDocuments())))
}

func (s dataServer) Adopt(ctx context.Context, r *pb.AdoptRequest) (*pb.AdoptReply, error) {
	e, err := fromEntry(r.GetEntry())
	if err != nil {
		return nil, toStatus(err)
	}
	return &pb.AdoptReply{}, toStatus(s.data.Adopt(ctx, e))
}

func (s dataServer) Purge(ctx context.Context, r *pb.PurgeRequest) (*pb.PurgeReply, error) {
	o, err := targets.ParseObject(r.GetObject())
	if err != nil {
		return nil, toStatus(err)
	}
	return &pb.PurgeReply{}, toStatus(s.data.Purge(ctx, o))
}
