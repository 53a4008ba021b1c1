package experiment

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/shirou/gopsutil/v3/cpu"
	"github.com/shirou/gopsutil/v3/host"
	"github.com/shirou/gopsutil/v3/load"
	"github.com/shirou/gopsutil/v3/mem"
	"github.com/shirou/gopsutil/v3/process"

	"github.com/metachaos/metachaos/results"
	"github.com/metachaos/metachaos/targets"
)

// hostInterval is how often the machine and the target's processes are
// measured. One process costs about 0.15 ms.
const hostInterval = time.Second

// hostFacts describes this machine. What cannot be read stays empty.
func hostFacts() results.HostFacts {
	f := results.HostFacts{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU()}
	f.Kernel, _ = host.KernelVersion()
	if infos, err := cpu.Info(); err == nil && len(infos) > 0 {
		f.CPU = infos[0].ModelName
	}
	if m, err := mem.VirtualMemory(); err == nil {
		f.MemoryBytes = m.Total
	}
	return f
}

// watchHost records the machine and the processes until ctx ends. The
// metachaos process itself is among them, as node "metachaos".
func watchHost(ctx context.Context, base targets.Base, processes func() []targets.Process, record func(results.Host)) {
	tick := time.NewTicker(hostInterval)
	defer tick.Stop()
	_, _ = cpu.Percent(0, false) // the first call only sets the mark that the next counts from
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			record(measureHost(base.Now(), processes()))
		}
	}
}

func measureHost(at time.Duration, processes []targets.Process) results.Host {
	h := results.Host{At: at}
	if p, err := cpu.Percent(0, false); err == nil && len(p) == 1 {
		h.CPUPercent = p[0]
	}
	if m, err := mem.VirtualMemory(); err == nil {
		h.MemoryBytes = m.Used
	}
	if l, err := load.Avg(); err == nil {
		h.Load1 = l.Load1
	}
	self := targets.Process{Node: "metachaos", PID: os.Getpid()}
	for _, p := range append(processes, self) {
		if use, ok := measureProcess(p); ok {
			h.Processes = append(h.Processes, use)
		}
	}
	return h
}

// measureProcess reports false for a process that is gone.
func measureProcess(p targets.Process) (results.ProcessUse, bool) {
	proc, err := process.NewProcess(int32(p.PID))
	if err != nil {
		return results.ProcessUse{}, false
	}
	use := results.ProcessUse{Node: p.Node, PID: p.PID}
	times, err := proc.Times()
	if err != nil {
		return results.ProcessUse{}, false
	}
	use.CPUSeconds = times.User + times.System
	if m, err := proc.MemoryInfo(); err == nil {
		use.RSSBytes = m.RSS
	}
	if n, err := proc.NumThreads(); err == nil {
		use.Threads = int(n)
	}
	use.ContextSwitches = contextSwitches(p.PID)
	if identity, err := targets.IdentifyProcess(p.PID); err == nil {
		use.State = string(identity.State())
	}
	return use, true
}

// contextSwitches sums over the threads of a process: /proc/PID/status, which
// gopsutil reads, counts those of the main thread alone (proc(5)).
func contextSwitches(pid int) (n uint64) {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	for _, t := range threads {
		status, err := os.ReadFile(dir + "/" + t.Name() + "/status")
		if err != nil {
			continue // the thread has ended
		}
		for line := range strings.Lines(string(status)) {
			if _, count, ok := strings.Cut(line, "ctxt_switches:"); ok {
				v, _ := strconv.ParseUint(strings.TrimSpace(count), 10, 64)
				n += v
			}
		}
	}
	return n
}
