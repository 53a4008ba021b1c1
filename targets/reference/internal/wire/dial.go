package wire

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference/internal/node"
)

// maxMessage is for scans of large shards.
const maxMessage = 64 << 20

// dial connects without waiting, and keeps the connection warm. A node that
// was restarted must be back soon, so the back-off is short.
func dial(addr string) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient("passthrough:///"+addr,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithIdleTimeout(0),
		grpc.WithNoProxy(),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 200 * time.Millisecond},
			MinConnectTimeout: time.Second,
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)))
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", addr, err)
	}
	conn.Connect()
	return conn, nil
}

// Peers knows the addresses of nodes and keeps one warm connection to each. It
// is safe for concurrent use.
type Peers struct {
	mu    sync.RWMutex
	peers map[targets.NodeID]endpoint
}

type endpoint struct {
	addr string
	conn *grpc.ClientConn
}

// NewPeers returns an empty directory.
func NewPeers() *Peers { return &Peers{peers: map[targets.NodeID]endpoint{}} }

// Set says where a node is. When it has moved, the connection to the old
// address is closed and calls on it end as lost.
func (p *Peers) Set(id targets.NodeID, addr string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	old, ok := p.peers[id]
	if ok && old.addr == addr {
		return nil
	}
	conn, err := dial(addr)
	if err != nil {
		return err
	}
	p.peers[id] = endpoint{addr, conn}
	if ok {
		return old.conn.Close()
	}
	return nil
}

// Addr returns the address of a node, or nothing.
func (p *Peers) Addr(id targets.NodeID) string {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.peers[id].addr
}

// Close closes all connections.
func (p *Peers) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for id, one := range p.peers {
		errs = append(errs, one.conn.Close())
		delete(p.peers, id)
	}
	return errors.Join(errs...)
}

func (p *Peers) conn(id targets.NodeID) (*grpc.ClientConn, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	one, ok := p.peers[id]
	if !ok {
		return nil, fmt.Errorf("the address of node %s is not known", id)
	}
	return one.conn, nil
}

// AwaitHealthy returns once the node says that it serves.
func (p *Peers) AwaitHealthy(ctx context.Context, id targets.NodeID) error {
	conn, err := p.conn(id)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the stream
	stream, err := healthpb.NewHealthClient(conn).Watch(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return fmt.Errorf("ask node %s for its health: %w", id, err)
	}
	for {
		r, err := stream.Recv()
		if err != nil {
			return fmt.Errorf("ask node %s for its health: %w", id, err)
		}
		if r.GetStatus() == healthpb.HealthCheckResponse_SERVING {
			return nil
		}
	}
}

// toStatus turns an error of a node into a gRPC error.
func toStatus(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, node.ErrStopping):
		return status.Error(codes.Unavailable, err.Error())
	case errors.Is(err, context.DeadlineExceeded):
		return status.Error(codes.DeadlineExceeded, err.Error())
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, err.Error())
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	return status.Error(codes.FailedPrecondition, err.Error())
}

// fromStatus undresses an error that the node itself gave; what the transport
// says stays as it is.
func fromStatus(err error) error {
	if s, ok := status.FromError(err); ok && (s.Code() == codes.FailedPrecondition || s.Code() == codes.InvalidArgument) {
		return errors.New(s.Message())
	}
	return err
}
