package faults

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// fakeLink is a gRPC server that pushes on demand, and one client of it that
// can be rerouted.
type fakeLink struct {
	addr     string
	received atomic.Uint64 // pushes that came to the client
	pushed   atomic.Uint64 // pushes that left the server

	mu      sync.Mutex
	streams map[chan struct{}]bool // one per open stream; a send is a push
	via     string
	leave   context.CancelFunc // ends the client's current connection
	left    chan struct{}      // closed when it has ended
	dead    error              // of every reroute
}

func newFakeLink(t *testing.T) *fakeLink {
	t.Helper()
	l := &fakeLink{streams: map[chan struct{}]bool{}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.addr = listener.Addr().String()
	server := grpc.NewServer()
	server.RegisterService(&grpc.ServiceDesc{ServiceName: "fake.Control", HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{StreamName: "Watch", ServerStreams: true, Handler: l.serve}}}, nil)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	l.connect(l.addr)
	t.Cleanup(func() { l.leave(); <-l.left })
	return l
}

func (l *fakeLink) serve(_ any, s grpc.ServerStream) error {
	kick := make(chan struct{}, 16)
	l.mu.Lock()
	l.streams[kick] = true
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.streams, kick)
	}()
	for {
		select {
		case <-kick:
			if err := s.SendMsg(wrapperspb.UInt64(l.pushed.Add(1))); err != nil {
				return err
			}
		case <-s.Context().Done():
			return nil
		}
	}
}

func (l *fakeLink) push(*testing.T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for kick := range l.streams {
		select {
		case kick <- struct{}{}:
		default:
		}
	}
}

// connect starts the client's stream by way of addr; it reconnects by the same
// way until it is told to leave.
func (l *fakeLink) connect(addr string) {
	ctx, cancel := context.WithCancel(context.Background())
	left := make(chan struct{})
	l.via, l.leave, l.left = addr, cancel, left
	go func() {
		defer close(left)
		conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		for ctx.Err() == nil {
			s, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/fake.Control/Watch", grpc.WaitForReady(true))
			if err != nil {
				continue
			}
			if s.SendMsg(wrapperspb.UInt64(0)) != nil || s.CloseSend() != nil {
				continue
			}
			for s.RecvMsg(new(wrapperspb.UInt64Value)) == nil {
				l.received.Add(1)
			}
		}
	}()
}

func (l *fakeLink) reroute(addr string) error {
	l.mu.Lock()
	dead := l.dead
	leave, left := l.leave, l.left
	l.mu.Unlock()
	if dead != nil {
		return dead
	}
	leave()
	<-left
	if addr == "" {
		addr = l.addr
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.connect(addr)
	return nil
}

func (l *fakeLink) state(*testing.T) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return "by way of " + l.via
}
