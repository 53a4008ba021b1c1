package faults

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/metachaos/metachaos/chaos"
	"github.com/metachaos/metachaos/chaos/chaostest"
	"github.com/metachaos/metachaos/targets"
)

// planned plans a step on the target and gives the handle a lease.
func planned(t *testing.T, f *fakeTarget, fault chaos.Fault, id, with string, on targets.Selector) (chaos.Handle, error) {
	t.Helper()
	scope, err := f.scope(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h, err := fault.Plan(t.Context(), chaos.Step{ID: id, Fault: fault.Describe().Name, On: on, Decode: chaostest.With(with)}, scope)
	h.Lease = time.Minute
	return h, err
}

func mustPlan(t *testing.T, f *fakeTarget, fault chaos.Fault, id, with string, on targets.Selector) chaos.Handle {
	t.Helper()
	h, err := planned(t, f, fault, id, with, on)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

var s1 = targets.Selector{Shard: "s1"}

func TestFreezeTouchesOnlyWhatItMay(t *testing.T) {
	f := newFakeTarget(t)
	freeze := PrimaryFreeze(nil, Options{}) // it needs processes alone
	if _, err := planned(t, f, freeze, "all", "", targets.Selector{}); err == nil || !strings.Contains(err.Error(), "max_nodes") {
		t.Errorf("freezing every primary: %v", err)
	}
	h := mustPlan(t, f, freeze, "q", "", s1)
	if len(h.Touches) != 1 || !strings.Contains(h.Touches[0], "(s1-0): SIGSTOP") {
		t.Errorf("touches %q", h.Touches)
	}
	// The pid is another's by the time of injecting.
	stale := h
	stale.State = []byte(strings.Replace(string(h.State), `"start":`, `"start":1`, 1))
	if err := freeze.Inject(t.Context(), stale); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("a reused pid: %v", err)
	}
	if f.sleepers["s1-0"].State() == 'T' {
		t.Error("a reused pid was stopped")
	}
	if rev := freeze.Revert(t.Context(), stale); rev.Undone != chaos.Reverted {
		t.Errorf("reverting on a process that is gone: %+v", rev)
	}
	undeclared := f.nodes[1]
	scope := chaos.Scope{Topology: targets.Topology{Nodes: []targets.Node{undeclared}}}
	if _, err := freeze.Plan(t.Context(), chaos.Step{ID: "x", On: s1}, scope); err == nil || !strings.Contains(err.Error(), "declares no process") {
		t.Errorf("a process that the target did not declare: %v", err)
	}
}

func TestFreezesDoNotUndoOneAnother(t *testing.T) {
	f := newFakeTarget(t)
	victim := f.sleepers["s1-0"]
	freeze := PrimaryFreeze(f, Options{})
	first, second := mustPlan(t, f, freeze, "first", "", s1), mustPlan(t, f, freeze, "second", "", s1)
	if err := freeze.Inject(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	for _, h := range []chaos.Handle{first, second} { // twice, and on what is held
		if err := freeze.Inject(t.Context(), h); err == nil || !strings.Contains(err.Error(), `held by the injection "first"`) {
			t.Errorf("%s: error %v", h.ID, err)
		}
	}
	if rev := freeze.Revert(t.Context(), second); rev.Undone != chaos.Reverted || victim.State() != 'T' {
		t.Errorf("reverting the second gave %+v, and left state %c", rev, victim.State())
	}
	if _, err := planned(t, f, freeze, "third", "", s1); err == nil || !strings.Contains(err.Error(), "stopped already") {
		t.Errorf("planning on a stopped process: %v", err)
	}
	if rev := freeze.Revert(t.Context(), first); rev.Undone != chaos.Reverted || victim.State() == 'T' {
		t.Errorf("reverting the first gave %+v, and left state %c", rev, victim.State())
	}
}

func TestFreezeToleratesTheDeathOfItsVictim(t *testing.T) {
	f := newFakeTarget(t)
	freeze := PrimaryFreeze(f, Options{})
	h := mustPlan(t, f, freeze, "q", "", s1)
	if err := freeze.Inject(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if s, err := freeze.Status(t.Context(), h); err != nil || !s.Effective || !strings.Contains(s.Evidence, "is stopped") {
		t.Errorf("status %+v, %v", s, err)
	}
	if err := chaos.Signal(f.sleepers["s1-0"].Process, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	f.sleepers["s1-0"].End()
	if s, err := freeze.Status(t.Context(), h); err != nil || s.Effective || !strings.Contains(s.Evidence, "is gone") {
		t.Errorf("status %+v, %v", s, err)
	}
	if rev := freeze.Revert(t.Context(), h); rev.Undone != chaos.Reverted {
		t.Errorf("revert: %+v", rev)
	}
}
