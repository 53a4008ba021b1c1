package reference

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference/internal/node"
	"github.com/metachaos/metachaos/targets/reference/internal/wire"
)

// Launcher says how to start a node process: a program that calls [NodeMain],
// usually this very program with a hidden subcommand.
type Launcher struct {
	Path string
	Args []string // without the program's name
	Env  []string // added to the environment of this process
}

// Options say what to start.
type Options struct {
	Config Config
	Base   targets.Base // of the run; truth is stamped with offsets from it
	Launch Launcher
	// Dir is where the cluster makes its data folder; the system's folder for
	// temporary files if empty.
	Dir string
	// Stderr receives what node processes complain about; nil drops it.
	Stderr io.Writer
}

// Cluster is a reference cluster whose nodes are processes on this host, which
// speak gRPC on loopback. It is safe for concurrent use.
type Cluster struct {
	*members
	options Options
	stderr  io.Writer
	dir     string
	peers   *wire.Peers
	push    *wire.PushLink
	turns   map[targets.NodeID]chan struct{} // held while a node is restarted

	mu       sync.Mutex
	children map[targets.NodeID]*child
	closed   bool
}

var (
	_ targets.Target     = (*Cluster)(nil)
	_ targets.Placer     = (*Cluster)(nil)
	_ targets.Fetcher    = (*Cluster)(nil)
	_ targets.Watcher    = (*Cluster)(nil)
	_ targets.TruthLog   = (*Cluster)(nil)
	_ targets.Processes  = (*Cluster)(nil)
	_ targets.Restarter  = (*Cluster)(nil)
	_ targets.Migrator   = (*Cluster)(nil)
	_ targets.Cooperator = (*Cluster)(nil)
	_ targets.Proxied    = (*Cluster)(nil)
)

// Start starts a cluster and returns once every node serves. Ctx bounds the
// start only; what was started lives until Close, or until this process dies.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if err := o.Config.Validate(); err != nil {
		return nil, err
	}
	if o.Launch.Path == "" {
		return nil, errors.New("start reference cluster: Launch.Path is empty; name a program that calls NodeMain")
	}
	o.Config = o.Config.WithDefaults()
	dir, err := os.MkdirTemp(o.Dir, "metachaos-reference-")
	if err != nil {
		return nil, fmt.Errorf("start reference cluster: %w", err)
	}
	c := &Cluster{members: newMembers(o.Config), options: o, stderr: io.Discard, dir: dir,
		peers: wire.NewPeers(), push: &wire.PushLink{}, children: map[targets.NodeID]*child{},
		turns: map[targets.NodeID]chan struct{}{}}
	if o.Stderr != nil {
		c.stderr = &lockedWriter{w: o.Stderr}
	}
	if err := c.startAll(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start reference cluster: %w", err), c.Close(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func (c *Cluster) startAll(ctx context.Context) error {
	starting, startCtx := errgroup.WithContext(ctx)
	for _, n := range c.nodes {
		c.turns[n.ID] = make(chan struct{}, 1)
		starting.Go(func() error { return c.start(startCtx, n) })
	}
	if err := starting.Wait(); err != nil {
		return err
	}
	if err := c.announce(); err != nil {
		return err
	}
	return c.awaitHealthy(ctx, c.nodes...)
}

// start starts one node and makes its address known here.
func (c *Cluster) start(ctx context.Context, n targets.Node) error {
	made, err := startChild(ctx, c.options.Launch, birth{Node: n, Config: c.config, Base: c.options.Base.String(),
		Dir: filepath.Join(c.dir, string(n.ID))}, c.stderr)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		made.kill()
		return errors.New("the cluster is closed")
	}
	c.children[n.ID] = made
	if n.Role == targets.RoleControl {
		if err := c.push.Move(made.addr); err != nil {
			return err
		}
	}
	return c.peers.Set(n.ID, made.addr)
}

// announce tells every node where all of them are. A node that has died is
// told nothing, and learns it when it is restarted.
func (c *Cluster) announce() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := directory{}
	for id, one := range c.children {
		d[id] = one.addr
	}
	var errs []error
	for _, one := range c.children {
		if err := one.tell(d); err != nil && one.process.Alive() {
			errs = append(errs, fmt.Errorf("tell node %s the addresses: %w", one.process.Node, err))
		}
	}
	return errors.Join(errs...)
}

// awaitHealthy waits for nodes to serve, and not for those that die.
func (c *Cluster) awaitHealthy(ctx context.Context, nodes ...targets.Node) error {
	waiting, ctx := errgroup.WithContext(ctx)
	for _, n := range nodes {
		c.mu.Lock()
		one := c.children[n.ID]
		c.mu.Unlock()
		if one == nil {
			return errors.New("the cluster is closed")
		}
		waiting.Go(func() error {
			ctx, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			go func() {
				select {
				case <-one.exited:
					cancel(fmt.Errorf("node %s ended: %v; it said: %s", n.ID, one.cmd.ProcessState, one.words))
				case <-ctx.Done():
				}
			}()
			if err := c.peers.AwaitHealthy(ctx, n.ID); err != nil {
				return errors.Join(err, context.Cause(ctx))
			}
			return nil
		})
	}
	return waiting.Wait()
}

// Dir is the folder that holds the data folders of all nodes. Close removes
// it; after a crash of this process whoever cleans up must.
func (c *Cluster) Dir() string { return c.dir }

// Processes lists the node processes that run.
func (c *Cluster) Processes() []targets.Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []targets.Process
	for _, n := range c.nodes {
		if one, ok := c.children[n.ID]; ok && one.process.Alive() {
			out = append(out, one.process)
		}
	}
	return out
}

// Restart kills a node, stopped or not, starts it again on its data folder,
// and returns once it serves. It has another address then; its peers and this
// target's clients are told.
func (c *Cluster) Restart(ctx context.Context, id targets.NodeID) error {
	n, err := c.node(id)
	if err != nil {
		return fmt.Errorf("restart: %w", err)
	}
	select {
	case c.turns[id] <- struct{}{}:
		defer func() { <-c.turns[id] }()
	case <-ctx.Done():
		return fmt.Errorf("restart node %s: another restart of it is under way: %w", id, ctx.Err())
	}
	c.mu.Lock()
	old := c.children[id]
	c.mu.Unlock()
	if old != nil {
		old.kill()
	}
	if err := c.start(ctx, n); err != nil {
		return fmt.Errorf("restart: %w", err)
	}
	if err := c.announce(); err != nil {
		return fmt.Errorf("restart node %s: %w", id, err)
	}
	if err := c.awaitHealthy(ctx, n); err != nil {
		return fmt.Errorf("restart node %s: %w", id, err)
	}
	return nil
}

// Close ends all node processes and removes their data. It may be called
// twice.
func (c *Cluster) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	children := c.children
	c.children = map[targets.NodeID]*child{}
	c.mu.Unlock()
	errs := []error{c.push.Close(), c.peers.Close()}
	var stopping sync.WaitGroup
	for _, one := range children {
		stopping.Go(func() { one.stop(ctx) })
	}
	stopping.Wait()
	errs = append(errs, os.RemoveAll(c.dir))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close reference cluster: %w", err)
	}
	return nil
}

// LinkAddr returns the address of the control plane, which pushes come from.
func (c *Cluster) LinkAddr(link targets.Link) (string, error) {
	if link != targets.LinkPush {
		return "", fmt.Errorf("the reference target has no link %q; it has %s", link, targets.LinkPush)
	}
	return c.peers.Addr(node.ControlID), nil
}

// Reroute leads the push streams through addr, or directly if it is empty.
func (c *Cluster) Reroute(_ context.Context, link targets.Link, addr string) error {
	direct, err := c.LinkAddr(link)
	if err != nil {
		return err
	}
	return c.push.Route(direct, addr)
}
