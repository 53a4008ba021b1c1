package targets

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// IdentifyProcess returns the identity of a running process of this host.
func IdentifyProcess(pid int) (Process, error) {
	_, start, err := readStat(pid)
	if err != nil {
		return Process{}, fmt.Errorf("identify process %d: %w", pid, err)
	}
	boot, err := bootID()
	if err != nil {
		return Process{}, fmt.Errorf("identify process %d: %w", pid, err)
	}
	return Process{PID: pid, Start: start, Boot: boot}, nil
}

// State returns the scheduler state letter of the process (proc(5): R, S, D,
// T for stopped, Z for a zombie …), or 0 when this very process is gone,
// whether or not another now has its pid.
func (p Process) State() byte {
	boot, err := bootID()
	if err != nil || boot != p.Boot {
		return 0
	}
	state, start, err := readStat(p.PID)
	if err != nil || start != p.Start {
		return 0
	}
	return state
}

// Alive reports whether this very process exists and is no zombie.
func (p Process) Alive() bool {
	s := p.State()
	return s != 0 && s != 'Z' && s != 'X'
}

func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err
}

// readStat reads fields 3 and 22 of /proc/PID/stat. Field 2 may hold spaces
// and parentheses, so fields are counted from its last closing one.
func readStat(pid int) (state byte, start uint64, err error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, err
	}
	i := strings.LastIndexByte(string(b), ')')
	if i < 0 {
		return 0, 0, fmt.Errorf("malformed stat line of process %d", pid)
	}
	fields := strings.Fields(string(b[i+1:]))
	if len(fields) < 20 {
		return 0, 0, fmt.Errorf("malformed stat line of process %d", pid)
	}
	start, err = strconv.ParseUint(fields[19], 10, 64)
	return fields[0][0], start, err
}
