package results

import (
	"time"

	"github.com/metachaos/metachaos/targets"
)

// Host is the state of the machine and of the target's processes at one
// moment. At is an offset from the run's base instant.
type Host struct {
	At          time.Duration `json:"at"`
	CPUPercent  float64       `json:"cpu_percent"` // of all cores together, 0 to 100
	MemoryBytes uint64        `json:"memory_bytes"`
	Load1       float64       `json:"load1"`
	Processes   []ProcessUse  `json:"processes,omitempty"`
}

// ProcessUse is what one process had used at that moment. Counters count from
// the start of the process.
type ProcessUse struct {
	Node       targets.NodeID `json:"node"`
	PID        int            `json:"pid"`
	CPUSeconds float64        `json:"cpu_seconds"`
	RSSBytes   uint64         `json:"rss_bytes"`
	Threads    int            `json:"threads"`
	// ContextSwitches are voluntary and involuntary ones together.
	ContextSwitches uint64 `json:"context_switches"`
	// State is the scheduler's state letter (proc(5)), for example "T" for a
	// stopped process.
	State string `json:"state"`
}
