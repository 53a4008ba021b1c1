package chaostest

import (
	"os/exec"
	"sync"
	"testing"

	"github.com/metachaos/metachaos/targets"
)

// Sleeper is a child process of the test that does nothing, for faults that
// act on processes. It ends with the test.
type Sleeper struct {
	targets.Process
	cmd  *exec.Cmd
	once sync.Once
}

// StartSleeper starts a process that stands for the node.
func StartSleeper(t *testing.T, node targets.NodeID) *Sleeper {
	t.Helper()
	cmd := exec.Command("sleep", "3600")
	if err := cmd.Start(); err != nil {
		t.Fatalf("start sleeper: %v", err)
	}
	s := &Sleeper{cmd: cmd}
	t.Cleanup(s.End)
	p, err := targets.IdentifyProcess(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	s.Process = p
	s.Node = node
	return s
}

// End kills the process and waits until it is gone. Ending twice is harmless.
func (s *Sleeper) End() {
	s.once.Do(func() {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	})
}
