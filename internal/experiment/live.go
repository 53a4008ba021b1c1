package experiment

import (
	"slices"
	"sync"
	"time"

	"github.com/metachaos/metachaos/targets"
)

// live counts what happens right now, for the live view and the guards: one
// slot per second, of which the last are kept.
type live struct {
	base  targets.Base
	mu    sync.Mutex
	slots [liveSeconds]liveSlot
}

// liveSeconds is how far back a guard can look.
const liveSeconds = 120

type liveSlot struct {
	second                            int64
	operations, done, refusals, pulls uint64
	timeouts, duplicates              uint64
}

func (s *liveSlot) add(e targets.Event) {
	if e.Verb == targets.EventPull {
		if !e.Shared {
			s.pulls++
		}
		return
	}
	if e.Verb == targets.EventPush {
		return
	}
	s.operations++
	if e.Outcome == targets.Done {
		s.done++
	}
	if e.Code == targets.CodeTimeout {
		s.timeouts++
	}
	s.duplicates += uint64(e.Duplicates)
	for _, h := range e.Hops {
		if h.Code != "" {
			s.refusals++
		}
	}
	if len(e.Hops) == 0 && e.Outcome == targets.Refused {
		s.refusals++
	}
}

// event counts one event in the second in which it ended.
func (l *live) event(e targets.Event) {
	second := int64(e.End / time.Second)
	l.mu.Lock()
	defer l.mu.Unlock()
	slot := &l.slots[second%liveSeconds]
	if slot.second > second {
		return // more than two minutes late
	}
	if slot.second != second {
		*slot = liveSlot{second: second}
	}
	slot.add(e)
}

// second returns the counts of a whole second, counted back from now; 1 is
// the last one that is complete.
func (l *live) second(back int64) liveSlot {
	second := int64(l.base.Now()/time.Second) - back
	l.mu.Lock()
	defer l.mu.Unlock()
	if second >= 0 {
		if s := l.slots[second%liveSeconds]; s.second == second {
			return s
		}
	}
	return liveSlot{second: second}
}

// signals are the live values that guards may watch. A value that has no
// meaning in a second, such as the success rate of no operation, is absent.
var signals = map[string]func(s liveSlot) (float64, bool){
	"availability.goodput": func(s liveSlot) (float64, bool) { return float64(s.done), true },
	"availability.success_rate": func(s liveSlot) (float64, bool) {
		if s.operations == 0 {
			return 0, false
		}
		return float64(s.done) / float64(s.operations), true
	},
	"availability.timeouts": func(s liveSlot) (float64, bool) { return float64(s.timeouts), true },
	"refusals.rate":         func(s liveSlot) (float64, bool) { return float64(s.refusals), true },
	"herd.pulls":            func(s liveSlot) (float64, bool) { return float64(s.pulls), true },
}

func signalNames() []string {
	var names []string
	for name := range signals {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
