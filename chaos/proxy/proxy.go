package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/encoding/gzip" // clients may compress; the server side must know how to read it
)

// Direction says which way a message goes.
type Direction string

// The directions.
const (
	ToServer Direction = "to-server"
	ToClient Direction = "to-client"
)

// Counts are the messages of one direction, counted at both ends of the
// proxy. When no stream is open, Received = Dropped + Sent unless a receiver
// went away.
type Counts struct {
	Received uint64 // read from the sender
	Dropped  uint64 // made to vanish by a rule
	Sent     uint64 // written to the receiver
}

// Config is what a proxy is made of.
type Config struct {
	// Backend is the host:port of the server.
	Backend string
	// Listen is the address to listen on; empty means 127.0.0.1 and a port that
	// the system picks.
	Listen string
}

// Proxy forwards every stream to one server. It is safe for concurrent use.
type Proxy struct {
	listener net.Listener
	server   *grpc.Server
	backend  *grpc.ClientConn
	served   chan error
	pumps    sync.WaitGroup

	arming sync.Mutex // orders changes of rules
	rules  atomic.Pointer[[]*Armed]

	streams   atomic.Int64
	lastID    atomic.Uint64
	toServer  meter
	toClient  meter
	closing   sync.Once
	closedErr error
}

type meter struct{ received, dropped, sent atomic.Uint64 }

// Listen starts a proxy. It connects to the server with the first stream. The
// caller closes the proxy.
func Listen(ctx context.Context, cfg Config) (*Proxy, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", cmp.Or(cfg.Listen, "127.0.0.1:0"))
	if err != nil {
		return nil, fmt.Errorf("listen for proxy: %w", err)
	}
	backend, err := grpc.NewClient("passthrough:///"+cfg.Backend,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDisableRetry(), // a retry would show the server a message twice
		grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.MaxCallSendMsgSize(math.MaxInt32)))
	if err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("proxy to %s: %w", cfg.Backend, err)
	}
	p := &Proxy{listener: listener, backend: backend, served: make(chan error, 1)}
	p.rules.Store(&[]*Armed{})
	p.server = grpc.NewServer(
		grpc.ForceServerCodecV2(rawCodec{}),
		grpc.UnknownServiceHandler(p.handle),
		grpc.MaxRecvMsgSize(math.MaxInt32), grpc.MaxSendMsgSize(math.MaxInt32),
		grpc.WaitForHandlers(true))
	go func() { p.served <- p.server.Serve(listener) }()
	return p, nil
}

// Addr returns the host:port that clients connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Streams returns the number of streams that are open now.
func (p *Proxy) Streams() int { return int(p.streams.Load()) }

// Counts returns what has passed in one direction, over all streams.
func (p *Proxy) Counts(d Direction) Counts {
	m := p.meter(d)
	return Counts{Received: m.received.Load(), Dropped: m.dropped.Load(), Sent: m.sent.Load()}
}

// Close breaks the open streams, stops listening, and returns once nothing of
// the proxy runs any more. Closing twice is harmless.
func (p *Proxy) Close() error {
	p.closing.Do(func() {
		p.server.Stop()
		err := <-p.served
		if errors.Is(err, grpc.ErrServerStopped) { // it never came to serving
			err = nil
		}
		p.closedErr = errors.Join(err, p.backend.Close())
		p.pumps.Wait()
	})
	return p.closedErr
}

// Arm makes a rule act on all streams, also those open already, until it is
// disarmed. Of several rules the first that drops a message decides.
func (p *Proxy) Arm(r Rule) (*Armed, error) {
	if err := r.validate(); err != nil {
		return nil, err
	}
	a := &Armed{rule: r, proxy: p}
	p.arming.Lock()
	defer p.arming.Unlock()
	next := append(slices.Clone(*p.rules.Load()), a)
	p.rules.Store(&next)
	return a, nil
}

func (p *Proxy) disarm(a *Armed) {
	p.arming.Lock()
	defer p.arming.Unlock()
	next := slices.DeleteFunc(slices.Clone(*p.rules.Load()), func(b *Armed) bool { return a == b })
	p.rules.Store(&next)
}

func (p *Proxy) meter(d Direction) *meter {
	if d == ToServer {
		return &p.toServer
	}
	return &p.toClient
}
