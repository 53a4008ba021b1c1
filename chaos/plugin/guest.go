package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/metachaos/metachaos/chaos"
)

// endLimit bounds what a guest does after its host is gone.
const endLimit = time.Minute

// Serve serves the faults to the host that started this process, until the
// host ends it, is gone, or a SIGTERM or SIGHUP comes. It then reverts
// whatever is still injected, and returns an error that names what it could
// not revert. The program must not write to its standard output before, and
// should exit when Serve returns. Run by hand, without a host, it prints an
// explanation and exits.
func Serve(faults ...chaos.Fault) error {
	// A write to the pipes of a dead host must fail, not kill the process that
	// still has to revert.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)

	served := make(chan *grpc.Server, 1)
	go func() {
		awaitEnd()
		(<-served).Stop() // cancels the calls under way, and lets goplugin.Serve return
	}()
	g := newGuest(faults)
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig:  handshake(),
		VersionedPlugins: pluginSets(g),
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			s := grpc.NewServer(opts...)
			served <- s
			return s
		},
	})
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	var errs []error
	for _, left := range g.ledger.revertAll(ctx) {
		if left.reversal.Undone != chaos.Reverted {
			errs = append(errs, &chaos.StuckError{ID: left.handle.ID, Fault: left.handle.Fault, Reversal: left.reversal})
		}
	}
	return errors.Join(errs...)
}

// awaitEnd returns when the host is gone or a signal asks for the end.
func awaitEnd() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if pipe := lifeline(); pipe != nil {
			_, _ = io.Copy(io.Discard, pipe) // the host never writes: this returns at its end
			return
		}
		awaitOrphaned(ctx, os.Getppid(), 200*time.Millisecond)
	}()
	select {
	case <-gone:
	case <-ctx.Done():
	}
}

// lifeline returns the read end of the host's pipe, or nil if there is none.
// Only what the host announced and what is a pipe counts: any other file may
// have got the number.
func lifeline() io.Reader {
	fd, err := strconv.Atoi(os.Getenv(lifelineVariable))
	if err != nil {
		return nil
	}
	var stat syscall.Stat_t
	if syscall.Fstat(fd, &stat) != nil || stat.Mode&syscall.S_IFMT != syscall.S_IFIFO {
		return nil
	}
	syscall.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), "lifeline")
}

// awaitOrphaned returns when the parent is no longer this process's parent.
func awaitOrphaned(ctx context.Context, parent int, period time.Duration) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for os.Getppid() == parent {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// named finds faults by name, for errors that say what there is.
type named struct {
	faults map[string]chaos.Fault
	order  []string
}

func (n named) get(name string) (chaos.Fault, error) {
	f, ok := n.faults[name]
	if !ok {
		return nil, fmt.Errorf("this plugin has no fault %q; it has %s", name, strings.Join(n.order, ", "))
	}
	return f, nil
}
