package wire

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference/internal/node"
	"github.com/metachaos/metachaos/targets/reference/internal/pb"
)

// Control is a client of the control plane.
type Control struct{ Peers *Peers }

var _ node.ControlPlane = Control{}

func (c Control) client() (pb.ControlClient, error) {
	conn, err := c.Peers.conn(node.ControlID)
	if err != nil {
		return nil, err
	}
	return pb.NewControlClient(conn), nil
}

// Fetch pulls entries.
func (c Control) Fetch(ctx context.Context, f targets.Fetch) ([]targets.Entry, error) {
	client, err := c.client()
	if err != nil {
		return nil, fmt.Errorf("fetch metadata: %w", err)
	}
	r := &pb.FetchRequest{Cause: string(f.Cause), Client: f.Client}
	for _, o := range f.Objects {
		r.Objects = append(r.Objects, o.String())
	}
	reply, err := client.Fetch(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("fetch metadata: %w", fromStatus(err))
	}
	return fromEntries(reply.GetEntries())
}

// Migrate brings a migration up to a stage.
func (c Control) Migrate(ctx context.Context, o targets.Object, to string, stage targets.Stage) (targets.Entry, error) {
	client, err := c.client()
	if err != nil {
		return targets.Entry{}, fmt.Errorf("migrate %s: %w", o, err)
	}
	reply, err := client.Migrate(ctx, &pb.MigrateRequest{Object: o.String(), To: to, Stage: string(stage)})
	if err != nil {
		return targets.Entry{}, fromStatus(err)
	}
	return fromEntry(reply.GetEntry())
}

// truthFlush bounds the delivery of what was recorded before ctx ended.
const truthFlush = 3 * time.Second

// FollowTruth delivers every record, over restarts of the control plane too,
// until ctx ends, and then what was recorded until that moment.
func (c Control) FollowTruth(ctx context.Context, deliver func(targets.Truth)) error {
	var position int64
	for ctx.Err() == nil {
		if err := c.followOnce(ctx, &position, deliver); err != nil {
			select { // the control plane is down; its log goes on where it was
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), truthFlush)
	defer cancel()
	client, err := c.client()
	if err != nil {
		return fmt.Errorf("follow truth: %w", err)
	}
	end, err := client.TruthEnd(last, &pb.TruthEndRequest{})
	if err != nil {
		return fmt.Errorf("follow truth: ask for the last records: %w", fromStatus(err))
	}
	if position >= end.GetPosition() {
		return nil
	}
	return c.follow(last, &position, end.GetPosition(), deliver)
}

// followOnce follows until ctx ends or the stream breaks. Records that were
// on their way when ctx ended are not lost: the position stays where it was.
func (c Control) followOnce(ctx context.Context, position *int64, deliver func(targets.Truth)) error {
	return c.follow(ctx, position, 1<<62, deliver)
}

func (c Control) follow(ctx context.Context, position *int64, until int64, deliver func(targets.Truth)) error {
	client, err := c.client()
	if err != nil {
		return fmt.Errorf("follow truth: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the stream
	stream, err := client.FollowTruth(ctx, &pb.FollowTruthRequest{From: *position})
	if err != nil {
		return fmt.Errorf("follow truth: %w", fromStatus(err))
	}
	for *position < until {
		batch, err := stream.Recv()
		if err != nil {
			return fmt.Errorf("follow truth: %w", fromStatus(err))
		}
		for _, one := range batch.GetTruths() {
			t, err := fromTruth(one)
			if err != nil {
				return fmt.Errorf("follow truth: %w", err)
			}
			deliver(t)
		}
		*position = batch.GetNext()
	}
	return nil
}

// PushLink is the connection over which pushes come. It can be led through a
// proxy. It is safe for concurrent use.
type PushLink struct {
	mu   sync.Mutex
	addr string // where the control plane is
	via  string // a proxy, if not empty
	conn *grpc.ClientConn
}

// Route sets where the control plane is and, if via is not empty, through
// which address it is reached. The open connection is closed if that changes
// the way; its streams break.
func (l *PushLink) Route(addr, via string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.way()
	l.addr, l.via = addr, via
	if l.conn != nil && l.way() == was {
		return nil
	}
	conn, err := dial(l.way())
	if err != nil {
		return err
	}
	old := l.conn
	l.conn = conn
	if old != nil {
		return old.Close()
	}
	return nil
}

// Move sets where the control plane is and leaves the proxy as it is.
func (l *PushLink) Move(addr string) error {
	l.mu.Lock()
	via := l.via
	l.mu.Unlock()
	return l.Route(addr, via)
}

func (l *PushLink) way() string {
	if l.via != "" {
		return l.via
	}
	return l.addr
}

// Watch subscribes. It returns nil when ctx ended.
func (l *PushLink) Watch(ctx context.Context, client string, deliver func(targets.Push)) error {
	l.mu.Lock()
	conn := l.conn
	l.mu.Unlock()
	if conn == nil {
		return errors.New("watch: the target is closed")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err := watch(ctx, pb.NewControlClient(conn), client, deliver)
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("watch: %w", fromStatus(err))
}

func watch(ctx context.Context, from pb.ControlClient, client string, deliver func(targets.Push)) error {
	stream, err := from.Watch(ctx, &pb.WatchRequest{Client: client})
	if err != nil {
		return err
	}
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		p, err := fromPush(m)
		if err != nil {
			return err
		}
		deliver(p)
	}
}

// Close closes the connection.
func (l *PushLink) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		return nil
	}
	conn := l.conn
	l.conn = nil
	return conn.Close()
}
