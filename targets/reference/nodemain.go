package reference

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference/internal/node"
	"github.com/metachaos/metachaos/targets/reference/internal/wal"
	"github.com/metachaos/metachaos/targets/reference/internal/wire"
)

// NodeMain is one node process of a cluster that [Start] started: the program
// that [Options].Launch names must call it, with its own standard streams. It
// returns when stdin ends, which it does also when the parent dies, or when
// ctx ends. Only errors go to stderr.
func NodeMain(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error {
	lines := bufio.NewReader(stdin)
	var b birth
	if err := readLine(lines, &b); err != nil {
		return fmt.Errorf("read the node's configuration from standard input: %w", err)
	}
	base, err := targets.ParseBase(b.Base)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	peers := wire.NewPeers()
	defer func() { _ = peers.Close() }() // the process ends
	informed := make(chan struct{})
	go func() {
		defer cancel()
		if err := followDirectory(lines, peers, informed); err != nil {
			_, _ = fmt.Fprintf(stderr, "node %s: %v\n", b.Node.ID, err)
		}
	}()

	if err := os.MkdirAll(b.Dir, 0o700); err != nil {
		return fmt.Errorf("make the data folder of node %s: %w", b.Node.ID, err)
	}
	disk, err := wal.OpenFile(filepath.Join(b.Dir, "log"))
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Join(fmt.Errorf("listen: %w", err), disk.Close())
	}
	if err := writeLine(stdout, announcement{Addr: l.Addr().String()}); err != nil {
		return errors.Join(err, l.Close(), disk.Close())
	}
	if b.Node.Role == targets.RoleControl {
		return runControl(ctx, b, base, disk, peers, l, informed)
	}
	return runData(ctx, b, disk, peers, l, informed)
}

func runControl(ctx context.Context, b birth, base targets.Base, disk wal.Storage, peers *wire.Peers, l net.Listener, informed <-chan struct{}) error {
	control, err := node.NewControl(b.Config.settings(), base, disk, func(shard string) (node.Mover, error) {
		return wire.Node{Peers: peers, ID: node.PrimaryID(shard)}, nil
	})
	if err != nil {
		return errors.Join(err, l.Close())
	}
	server := wire.NewControlServer(control)
	return errors.Join(serveWhen(ctx, server, l, informed), control.Close())
}

func runData(ctx context.Context, b birth, disk wal.Storage, peers *wire.Peers, l net.Listener, informed <-chan struct{}) error {
	var primary node.Primary
	if b.Node.Role == targets.RoleSecondary {
		primary = wire.Node{Peers: peers, ID: node.PrimaryID(b.Node.Shard)}
	}
	self := node.Identity{ID: b.Node.ID, Shard: b.Node.Shard, Role: b.Node.Role}
	data, err := node.NewData(self, b.Config.settings(), disk, wire.Control{Peers: peers}, primary)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	server := wire.NewDataServer(data)
	running, stop := context.WithCancel(ctx)
	defer stop()
	var alive sync.WaitGroup
	alive.Go(func() {
		select { // without addresses there is nobody to ask
		case <-informed:
			data.Run(running)
		case <-running.Done():
		}
	})
	err = serveWhen(ctx, server, l, informed, data.Ready())
	stop()
	alive.Wait()
	return errors.Join(err, data.Close())
}

// serveWhen serves until ctx ends, and is healthy once all of it has come.
func serveWhen(ctx context.Context, server *wire.Server, l net.Listener, all ...<-chan struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	waiting.Go(func() {
		for _, one := range all {
			select {
			case <-one:
			case <-ctx.Done():
				return
			}
		}
		server.Ready()
	})
	return server.Serve(ctx, l)
}

// followDirectory reads addresses until the input ends. It closes informed
// after the first.
func followDirectory(lines *bufio.Reader, peers *wire.Peers, informed chan<- struct{}) error {
	for first := true; ; first = false {
		var d directory
		if err := readLine(lines, &d); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("read addresses from standard input: %w", err)
		}
		for id, addr := range d {
			if err := peers.Set(id, addr); err != nil {
				return err
			}
		}
		if first {
			close(informed)
		}
	}
}

func readLine(from *bufio.Reader, into any) error {
	line, err := from.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, into)
}
