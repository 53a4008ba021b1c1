package chaos

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/metachaos/metachaos/targets"
)

// Touchable returns an error when p is a process that no fault may signal,
// whatever a target declares: the first process, this one, or one of its
// ancestors.
func Touchable(p targets.Process) error {
	if p.PID <= 1 {
		return fmt.Errorf("signal process %d: the first process and process groups are never touched", p.PID)
	}
	for pid, depth := os.Getpid(), 0; pid > 1 && depth < 256; depth++ {
		if pid == p.PID {
			return fmt.Errorf("signal process %d: it is this program or one of its ancestors", p.PID)
		}
		parent, err := parentOf(pid)
		if err != nil {
			return fmt.Errorf("signal process %d: read ancestors: %w", p.PID, err)
		}
		pid = parent
	}
	return nil
}

// Signal sends sig to this very process, and to no other that has its pid by
// now. A process that is gone gives an error that is [os.ErrProcessDone]. The
// process must be [Touchable].
func Signal(p targets.Process, sig syscall.Signal) error {
	if err := Touchable(p); err != nil {
		return err
	}
	// The order matters. FindProcess pins whatever has the pid now (pidfd_open);
	// when the recorded process is alive after that, it is what was pinned,
	// since it has held the pid from before.
	proc, err := os.FindProcess(p.PID)
	if err != nil {
		return fmt.Errorf("find process %d: %w", p.PID, err)
	}
	defer func() { _ = proc.Release() }()
	if !p.Alive() {
		return fmt.Errorf("signal process %d: %w", p.PID, os.ErrProcessDone)
	}
	if err := proc.Signal(sig); err != nil {
		return fmt.Errorf("signal process %d with %v: %w", p.PID, sig, err)
	}
	return nil
}

func parentOf(pid int) (int, error) {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "PPid:"); ok {
			return strconv.Atoi(strings.TrimSpace(rest))
		}
	}
	if err := lines.Err(); err != nil {
		return 0, err
	}
	return 0, fmt.Errorf("the status of process %d names no parent", pid)
}
