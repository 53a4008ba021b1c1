package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/metachaos/metachaos/targets/reference/internal/node"
	"github.com/metachaos/metachaos/targets/reference/internal/pb"
)

// stopLimit bounds a graceful stop.
const stopLimit = 500 * time.Millisecond

// Server serves one node.
type Server struct {
	grpc   *grpc.Server
	health *health.Server
	drain  func()
}

// NewControlServer serves a control plane. It is healthy once Ready was called.
func NewControlServer(c *node.Control) *Server {
	s := newServer(c.Drain)
	pb.RegisterControlServer(s.grpc, controlServer{control: c})
	pb.RegisterRulesServer(s.grpc, rulesServer{keeper: c})
	return s
}

// NewDataServer serves a data node. It is healthy once Ready was called.
func NewDataServer(d *node.Data) *Server {
	s := newServer(d.Drain)
	pb.RegisterDataServer(s.grpc, dataServer{data: d})
	pb.RegisterRulesServer(s.grpc, rulesServer{keeper: d})
	return s
}

func newServer(drain func()) *Server {
	s := &Server{grpc: grpc.NewServer(grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage)),
		health: health.NewServer(), drain: drain}
	s.health.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
	healthpb.RegisterHealthServer(s.grpc, s.health)
	reflection.Register(s.grpc)
	return s
}

// Ready makes the health service say that the node serves.
func (s *Server) Ready() { s.health.SetServingStatus("", healthpb.HealthCheckResponse_SERVING) }

// Serve answers on l, which it owns, until ctx ends. Then it says so, ends its
// streams, and gives running calls a moment.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	served := make(chan error, 1)
	go func() { served <- s.grpc.Serve(l) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	s.health.Shutdown()
	s.drain()
	hard := time.AfterFunc(stopLimit, s.grpc.Stop) // also ends the streams of health and reflection
	defer hard.Stop()
	s.grpc.GracefulStop()
	return <-served
}

type rulesServer struct {
	pb.UnimplementedRulesServer
	keeper node.RuleKeeper
}

func (s rulesServer) SetRule(ctx context.Context, r *pb.SetRuleRequest) (*pb.SetRuleReply, error) {
	return &pb.SetRuleReply{}, toStatus(s.keeper.SetRule(ctx, fromRule(r)))
}

func (s rulesServer) GetRule(ctx context.Context, r *pb.GetRuleRequest) (*pb.GetRuleReply, error) {
	state, err := s.keeper.RuleState(ctx, r.GetId())
	return &pb.GetRuleReply{Armed: state.Armed, Hits: state.Hits, Seen: state.Seen}, toStatus(err)
}

func (s rulesServer) ClearRule(ctx context.Context, r *pb.ClearRuleRequest) (*pb.ClearRuleReply, error) {
	return &pb.ClearRuleReply{}, toStatus(s.keeper.ClearRule(ctx, r.GetId()))
}

// ended tells the end of a stream by its client from a failure.
func ended(err error) bool { return errors.Is(err, io.EOF) }
