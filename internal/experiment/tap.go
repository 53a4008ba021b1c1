package experiment

import (
	"sync"

	"github.com/metachaos/metachaos/results"
	"github.com/metachaos/metachaos/targets"
)

// tap passes events on to the run folder, once there is one, and counts them
// for the live view.
type tap struct {
	live   *live
	mu     sync.RWMutex
	folder *results.Folder
}

func (t *tap) open(f *results.Folder) {
	t.mu.Lock()
	t.folder = f
	t.mu.Unlock()
}

// Event implements fleet.Sink.
func (t *tap) Event(e targets.Event) {
	t.live.event(e)
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.folder != nil {
		t.folder.Event(e)
	}
}

// recorders hands samples to several recorders.
type recorders []results.Recorder

// Record implements [results.Recorder].
func (rs recorders) Record(samples ...results.Sample) {
	for _, r := range rs {
		r.Record(samples...)
	}
}
