package reference

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/metachaos/metachaos/targets"
)

const (
	stopPatience = 2 * time.Second        // for a node to stop by itself
	tellPatience = 500 * time.Millisecond // for room in the pipe of a node that is stopped
)

// child is one run of a node process.
type child struct {
	process targets.Process
	addr    string
	cmd     *exec.Cmd
	stdin   *os.File
	words   *lastWords
	exited  chan struct{} // closed when the process was waited for
}

// startChild starts a node process and returns once it listens.
func startChild(ctx context.Context, launch Launcher, b birth, stderr io.Writer) (*child, error) {
	c, announced, err := spawn(launch, b.Node.ID, stderr)
	if err != nil {
		return nil, fmt.Errorf("start node %s: %w", b.Node.ID, err)
	}
	fail := func(err error) (*child, error) {
		c.kill()
		if words := c.words.String(); words != "" {
			err = fmt.Errorf("%w; it said: %s", err, words)
		}
		return nil, fmt.Errorf("start node %s: %w", b.Node.ID, err)
	}
	if err := c.tell(b); err != nil {
		return fail(err)
	}
	select {
	case line := <-announced:
		var a announcement
		if err := json.Unmarshal(line, &a); err != nil || a.Addr == "" {
			return fail(fmt.Errorf("its first line is %.100q; want its address as JSON (does the launcher run NodeMain?)", line))
		}
		c.addr = a.Addr
		return c, nil
	case <-c.exited:
		return fail(fmt.Errorf("the process ended: %v", c.cmd.ProcessState))
	case <-ctx.Done():
		return fail(context.Cause(ctx))
	}
}

func spawn(launch Launcher, id targets.NodeID, stderr io.Writer) (*child, <-chan []byte, error) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = theirs.Close() }() // the child has its own
	out := &firstLine{line: make(chan []byte, 1)}
	c := &child{stdin: ours, exited: make(chan struct{}), words: &lastWords{to: stderr}}
	c.cmd = exec.Command(launch.Path, launch.Args...)
	c.cmd.Env = append(os.Environ(), launch.Env...)
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = theirs, out, c.words
	c.cmd.WaitDelay = time.Second
	// A process group of its own keeps the terminal's Ctrl-C from the nodes:
	// their parent ends them in its own time. It also has the kernel wake a
	// stopped node when the parent dies, since its group is orphaned then.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.cmd.Start(); err != nil {
		return nil, nil, errors.Join(err, ours.Close())
	}
	go func() {
		defer close(c.exited)
		_ = c.cmd.Wait() // how it ended stands in ProcessState
	}()
	c.process, err = targets.IdentifyProcess(c.cmd.Process.Pid)
	c.process.Node = id
	if err != nil {
		c.kill()
		return nil, nil, err
	}
	return c, out.line, nil
}

// tell writes a line to the process. One that is stopped reads it later: the
// pipe has room for many.
func (c *child) tell(v any) error {
	if err := c.stdin.SetWriteDeadline(time.Now().Add(tellPatience)); err != nil {
		return err
	}
	return writeLine(c.stdin, v)
}

// kill ends the process at once and waits for its end.
func (c *child) kill() {
	_ = c.stdin.Close()
	_ = c.cmd.Process.Kill() // an error says that it has ended already
	<-c.exited
}

// stop asks the process to end, and kills it if it does not, or cannot
// because it is stopped.
func (c *child) stop(ctx context.Context) {
	_ = c.stdin.Close()
	if state := c.process.State(); state != 'T' && state != 't' {
		patience := time.NewTimer(stopPatience)
		defer patience.Stop()
		select {
		case <-c.exited:
		case <-patience.C:
		case <-ctx.Done():
		}
	}
	c.kill()
}
