package chaostest

import (
	"cmp"
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/metachaos/metachaos/chaos"
)

// Harness is one fault and a target of its own to try it on.
type Harness struct {
	// Fault is bound to the target; required.
	Fault chaos.Fault
	// Fresh is the same fault as another process would make it, which has no
	// live target. Required unless the fault is an action.
	Fresh chaos.Fault
	// Step is valid and selects something. The suite sets the id and, where it
	// drives a timeline, the time.
	Step chaos.Step
	// Nothing is a valid step that selects nothing. The zero Step means that
	// the fault has nothing to select.
	Nothing chaos.Step
	// Scope says what may be touched; required.
	Scope func(ctx context.Context) (chaos.Scope, error)
	// State describes everything that the fault may touch and that a reversal
	// must bring back; required. It is compared before and after.
	State func(t *testing.T) string
	// Provoke makes the target do what the fault acts on, so that it can be
	// effective. Nil: nothing is needed.
	Provoke func(t *testing.T)
	// Crash ends what would end with a killed controller, before Fresh
	// recovers. Nil: nothing would, and State must be as before afterwards.
	Crash func(t *testing.T)
	// Patience bounds each wait of the suite; 0 means 20 s.
	Patience time.Duration
}

func (h Harness) patience() time.Duration { return cmp.Or(h.Patience, 20*time.Second) }

// plan returns the handle as it comes back from a journal.
func (h Harness) plan(t *testing.T, id string) chaos.Handle {
	t.Helper()
	step := h.Step
	step.ID = id
	handle, err := h.Fault.Plan(t.Context(), step, h.scope(t))
	if err != nil {
		t.Fatalf("plan: %v", err)
	}
	handle.ID, handle.Fault, handle.Lease = id, step.Fault, time.Minute
	body, err := json.Marshal(handle)
	if err != nil {
		t.Fatalf("write handle: %v", err)
	}
	var back chaos.Handle
	if err := json.Unmarshal(body, &back); err != nil {
		t.Fatalf("read handle: %v", err)
	}
	return back
}

func (h Harness) scope(t *testing.T) chaos.Scope {
	t.Helper()
	s, err := h.Scope(t.Context())
	if err != nil {
		t.Fatalf("scope: %v", err)
	}
	return s
}

func (h Harness) awaitEffect(t *testing.T, handle chaos.Handle) {
	t.Helper()
	var last any
	for end := time.Now().Add(h.patience()); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if h.Provoke != nil {
			h.Provoke(t)
		}
		s, err := h.Fault.Status(t.Context(), handle)
		if err == nil && s.Effective {
			if s.Evidence == "" {
				t.Error("it is effective without evidence")
			}
			return
		}
		last = err
		if err == nil {
			last = s
		}
	}
	t.Errorf("it was never effective; the last status was %+v", last)
}

func (h Harness) clean(t *testing.T, what string, rev chaos.Reversal) {
	t.Helper()
	if rev.Undone != chaos.Reverted || rev.Evidence == "" {
		t.Errorf("%s: %+v; want it reverted, with evidence", what, rev)
	}
}

// same waits until the state is as it was: what was reverted may take a moment
// to show.
func (h Harness) same(t *testing.T, before string) {
	t.Helper()
	now := ""
	for end := time.Now().Add(h.patience()); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if now = h.State(t); now == before {
			return
		}
	}
	t.Errorf("the state is\n%s\nand was\n%s", now, before)
}
