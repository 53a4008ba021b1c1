package reference_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference"
)

func TestCloseLeavesNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	parent := t.TempDir()
	c, err := reference.Start(t.Context(), reference.Options{Config: small(nil), Base: targets.NewBase(), Launch: launcher(t), Dir: parent})
	if err != nil {
		t.Fatal(err)
	}
	top, err := c.Topology(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	processes := c.Processes()
	if len(processes) != len(top.Nodes) || len(top.Nodes) != 7 {
		t.Fatalf("%d processes of %d nodes; want 7", len(processes), len(top.Nodes))
	}
	if inside, err := filepath.Rel(parent, c.Dir()); err != nil || strings.HasPrefix(inside, "..") {
		t.Errorf("the data folder %s is not below %s", c.Dir(), parent)
	}
	signal(t, processes[1], unix.SIGSTOP) // one that cannot end by itself
	began := time.Now()
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("closing took %v", took)
	}
	for _, p := range processes {
		if p.State() != 0 {
			t.Errorf("process %+v is in state %c after Close", p, p.State())
		}
	}
	for _, n := range top.Nodes {
		if conn, err := net.Dial("tcp", n.Addr); err == nil {
			_ = conn.Close()
			t.Errorf("somebody still listens on %s of node %s", n.Addr, n.ID)
		}
	}
	if _, err := os.Stat(c.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the data folder is still there: %v", err)
	}
	goleak.VerifyNone(t, before)
}

func TestFailedStartLeavesNothing(t *testing.T) {
	for name, broken := range map[string]reference.Launcher{
		"no such program": {Path: filepath.Join(t.TempDir(), "missing")},
		"no node":         {Path: "/bin/echo", Args: []string{"hello"}},
		"dies with words": {Path: "/bin/sh", Args: []string{"-c", "echo out of luck >&2; exit 3"}},
	} {
		t.Run(name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			parent := t.TempDir()
			_, err := reference.Start(t.Context(), reference.Options{Config: small(nil), Base: targets.NewBase(), Launch: broken, Dir: parent})
			if err == nil {
				t.Fatal("starting with a broken launcher is no error")
			}
			if name == "dies with words" && !strings.Contains(err.Error(), "out of luck") {
				t.Errorf("error %q does not tell what the process said", err)
			}
			if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
			goleak.VerifyNone(t, before)
		})
	}
}

// family is what a parent process tells of its cluster.
type family struct {
	Dir       string
	Processes []targets.Process
}

// parentMain is a process that starts a cluster and then does nothing.
func parentMain() {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	c, err := reference.Start(context.Background(), reference.Options{Config: small(nil), Base: targets.NewBase(), Dir: os.Getenv("PARENT_DIR"),
		Launch: reference.Launcher{Path: self, Env: []string{roleVariable + "=node"}}})
	if err != nil {
		panic(err)
	}
	line, err := json.Marshal(family{c.Dir(), c.Processes()})
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
	time.Sleep(time.Hour)
}

// Nodes end by themselves when their parent is killed, also one that was
// stopped at that moment.
func TestNodesDieWithTheirParent(t *testing.T) {
	parent := exec.Command(launcher(t).Path)
	parent.Env = append(os.Environ(), roleVariable+"=parent", "PARENT_DIR="+t.TempDir())
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = parent.Wait() }()
	defer func() { _ = parent.Process.Kill() }()
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var f family
	if err := json.Unmarshal(line, &f); err != nil || len(f.Processes) != 7 {
		t.Fatalf("the parent told %q (%v); want 7 processes", line, err)
	}
	stopped := f.Processes[1]
	signal(t, stopped, unix.SIGSTOP)
	waitUntil(t, 5*time.Second, "one node is stopped", func() bool { return stopped.State() == 'T' })
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, p := range f.Processes {
		waitUntil(t, 10*time.Second, fmt.Sprintf("node %s ends after its parent", p.Node), func() bool { return !p.Alive() })
	}
}
