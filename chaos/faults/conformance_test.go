package faults

import (
	"testing"
	"time"

	"github.com/metachaos/metachaos/chaos"
	"github.com/metachaos/metachaos/chaos/chaostest"
	"github.com/metachaos/metachaos/targets"
)

// TestConformance runs the contract suite over every built-in fault, in each
// way that it works.
func TestConformance(t *testing.T) {
	nowhere := targets.Selector{Shard: "s9"}
	step := func(fault, with string, on targets.Selector) chaos.Step {
		return chaos.Step{ID: "try", Fault: fault, For: time.Second, On: on, Seed: 1, Decode: chaostest.With(with)}
	}
	action := func(s chaos.Step) chaos.Step { s.For = 0; return s }
	tests := []struct {
		name    string
		step    chaos.Step
		nothing chaos.Step
		adjust  func(t *testing.T, f *fakeTarget, h *chaostest.Harness)
	}{
		{"push.drop via control", step("push.drop", "{share: 0.5, count: 3, object: route/r1, client: c1}", targets.Selector{}),
			step("push.drop", "object: route/r999", targets.Selector{}), lapsing},
		{"push.drop via proxy", step("push.drop", "{via: proxy, share: 0.5}", targets.Selector{}),
			chaos.Step{}, proxied}, // the link is there, or the target has no such capability
		{"ttl.synchronize", step("ttl.synchronize", "in: 2s", targets.Selector{}),
			step("ttl.synchronize", "", nowhere), lapsing},
		{"primary.freeze stop", step("primary.freeze", "", targets.Selector{Shard: "s1"}),
			step("primary.freeze", "mode: stop", nowhere), nil},
		{"primary.freeze write-stall", step("primary.freeze", "mode: write-stall", targets.Selector{Shard: "s1"}),
			step("primary.freeze", "mode: write-stall", nowhere), lapsing},
		{"node.restart", action(step("node.restart", "", targets.Selector{Node: "s1-1"})),
			action(step("node.restart", "", nowhere)), nil},
		{"shard.migrate", step("shard.migrate", "{share: 0.4, to: s2}", targets.Selector{Shard: "s1"}),
			step("shard.migrate", "{object: route/r1, to: s2}", targets.Selector{}), crashing},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			chaostest.Run(t, func(t *testing.T) chaostest.Harness {
				t.Helper()
				f := newFakeTarget(t)
				h := chaostest.Harness{
					Fault: All(f, Options{})[tt.step.Fault],
					Fresh: All(nil, Options{})[tt.step.Fault],
					Step:  tt.step, Nothing: tt.nothing,
					Scope: f.scope, State: f.state,
				}
				if tt.adjust != nil {
					tt.adjust(t, f, &h)
				}
				return h
			})
		})
	}
}

// lapsing is for rules, which end with the target's processes.
func lapsing(t *testing.T, f *fakeTarget, h *chaostest.Harness) {
	t.Helper()
	h.Provoke = f.act
	h.Crash = f.crash
}

func crashing(t *testing.T, f *fakeTarget, h *chaostest.Harness) {
	t.Helper()
	h.Crash = f.crash
}

// proxied gives the target a push link, and lets a sleeper stand for the
// controller that the proxy lives in.
func proxied(t *testing.T, f *fakeTarget, h *chaostest.Harness) {
	t.Helper()
	f.link = newFakeLink(t)
	controller := chaostest.StartSleeper(t, "")
	h.Fault = PushDrop(f, Options{Controller: controller.Process})
	h.Provoke, h.State = f.link.push, f.link.state
	h.Crash = func(*testing.T) { controller.End() }
}
