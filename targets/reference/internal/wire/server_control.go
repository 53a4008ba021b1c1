package wire

import (
	"context"

	"google.golang.org/grpc"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference/internal/node"
	"github.com/metachaos/metachaos/targets/reference/internal/pb"
)

type controlServer struct {
	pb.UnimplementedControlServer
	control *node.Control
}

func (s controlServer) Fetch(ctx context.Context, r *pb.FetchRequest) (*pb.FetchReply, error) {
	f := targets.Fetch{Cause: targets.Cause(r.GetCause()), Client: r.GetClient()}
	for _, text := range r.GetObjects() {
		o, err := targets.ParseObject(text)
		if err != nil {
			return nil, toStatus(err)
		}
		f.Objects = append(f.Objects, o)
	}
	entries, err := s.control.Fetch(ctx, f)
	return &pb.FetchReply{Entries: toEntries(entries)}, toStatus(err)
}

func (s controlServer) Watch(r *pb.WatchRequest, stream grpc.ServerStreamingServer[pb.Push]) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	var failed error
	err := s.control.Watch(ctx, r.GetClient(), func(p targets.Push) {
		if failed = stream.Send(toPush(p)); failed != nil {
			cancel()
		}
	})
	if failed != nil {
		return failed
	}
	return toStatus(err)
}

// truthBatch is how many records go into one message at most.
const truthBatch = 256

func (s controlServer) FollowTruth(r *pb.FollowTruthRequest, stream grpc.ServerStreamingServer[pb.Truths]) error {
	batch := &pb.Truths{Next: r.GetFrom()}
	flush := func() error {
		if len(batch.Truths) == 0 {
			return nil
		}
		out := batch
		batch = &pb.Truths{Next: out.Next}
		return stream.Send(out)
	}
	err := s.control.FollowTruth(stream.Context(), r.GetFrom(), func(t targets.Truth, next int64, more bool) error {
		batch.Truths, batch.Next = append(batch.Truths, toTruth(t)), next
		if more && len(batch.Truths) < truthBatch {
			return nil
		}
		return flush()
	})
	return toStatus(err)
}

func (s controlServer) TruthEnd(ctx context.Context, _ *pb.TruthEndRequest) (*pb.TruthEndReply, error) {
	position, err := s.control.TruthEnd(ctx)
	return &pb.TruthEndReply{Position: position}, toStatus(err)
}

func (s controlServer) Migrate(ctx context.Context, r *pb.MigrateRequest) (*pb.MigrateReply, error) {
	o, err := targets.ParseObject(r.GetObject())
	if err != nil {
		return nil, toStatus(err)
	}
	e, err := s.control.Migrate(ctx, o, r.GetTo(), targets.Stage(r.GetStage()))
	return &pb.MigrateReply{Entry: toEntry(e)}, toStatus(err)
}
