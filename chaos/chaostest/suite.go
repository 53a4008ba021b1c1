// Package chaostest is the contract that every fault keeps, as a test suite:
// for the built-in faults, and for those of plugin authors.
package chaostest

import (
	"context"
	"regexp"
	"testing"
	"time"

	"github.com/metachaos/metachaos/chaos"
	"github.com/metachaos/metachaos/chaos/internal/with"
	"github.com/metachaos/metachaos/targets"
)

// With returns a step's decoder for a configuration in YAML. Its errors carry
// line and column.
func With(yaml string) func(into any) error { return with.Strict([]byte(yaml)) }

// Run runs the suite. The function makes a new harness for each test in it.
func Run(t *testing.T, fresh func(t *testing.T) Harness) {
	t.Helper()
	t.Run("describes itself", func(t *testing.T) { describes(t, fresh(t)) })
	t.Run("refuses a bad configuration", func(t *testing.T) { refusesBadConfiguration(t, fresh(t)) })
	if fresh(t).Nothing.Fault != "" {
		t.Run("refuses to select nothing", func(t *testing.T) { refusesNothing(t, fresh(t)) })
	}
	t.Run("plans without touching", func(t *testing.T) { plansOnly(t, fresh(t)) })
	t.Run("injects once per id", func(t *testing.T) { injectsOnce(t, fresh(t)) })
	if fresh(t).Fault.Describe().Instant {
		return // the rest is about taking back
	}
	t.Run("takes effect and is reverted", func(t *testing.T) { lives(t, fresh(t)) })
	t.Run("reverts when cut off while injecting", func(t *testing.T) { survivesCancel(t, fresh) })
	t.Run("recovers in a fresh instance", func(t *testing.T) { recovers(t, fresh(t), true) })
	t.Run("recovers what was planned only", func(t *testing.T) { recovers(t, fresh(t), false) })
}

func describes(t *testing.T, h Harness) {
	t.Helper()
	d := h.Fault.Describe()
	if d.Name == "" || d.Summary == "" || d.Name != h.Step.Fault {
		t.Errorf("description %+v: want a summary, and the name %q of the step", d, h.Step.Fault)
	}
	seen := map[string]bool{}
	for _, f := range d.Fields {
		if f.Name == "" || f.Type == "" || f.Summary == "" || seen[f.Name] {
			t.Errorf("field %+v: want a name of its own, a type and a summary", f)
		}
		seen[f.Name] = true
	}
	if err := h.Fault.Validate(h.Step); err != nil {
		t.Errorf("the valid step is refused: %v", err)
	}
}

func refusesBadConfiguration(t *testing.T, h Harness) {
	t.Helper()
	position := regexp.MustCompile(`\d+:\d+`)
	for _, text := range []string{"no_such_field: 1\n", "{a: {b: c}}", "- 1\n- 2\n", "just text", "\x00\xff\xfe", "[[[", "{\"a\":"} {
		step := h.Step
		step.Decode = With(text)
		err := h.Fault.Validate(step)
		if err == nil {
			t.Errorf("the configuration %q is accepted", text)
			continue
		}
		if text == "no_such_field: 1\n" && !position.MatchString(err.Error()) {
			t.Errorf("the error about %q has no line and column: %v", text, err)
		}
	}
}

func refusesNothing(t *testing.T, h Harness) {
	t.Helper()
	before := h.State(t)
	if err := h.Fault.Validate(h.Nothing); err != nil {
		t.Fatalf("the step that selects nothing is not even valid: %v", err)
	}
	if _, err := h.Fault.Plan(t.Context(), h.Nothing, h.scope(t)); err == nil {
		t.Error("a step that selects nothing is planned")
	}
	h.same(t, before)
}

func plansOnly(t *testing.T, h Harness) {
	t.Helper()
	before := h.State(t)
	handle := h.plan(t, "plan-only")
	if len(handle.Touches) == 0 {
		t.Error("the handle does not say what would be touched")
	}
	h.same(t, before)
}

func injectsOnce(t *testing.T, h Harness) {
	t.Helper()
	journal, err := chaos.OpenJournal(t.TempDir() + "/journal")
	if err != nil {
		t.Fatal(err)
	}
	before := h.State(t)
	var last chaos.Injection
	base := targets.NewBase()
	runner := chaos.NewRunner(chaos.RunnerConfig{
		Faults:  map[string]chaos.Fault{h.Step.Fault: h.Fault},
		Scope:   h.Scope,
		Journal: journal,
		Clock:   base,
		Record:  func(in chaos.Injection) { last = in },
	})
	step := h.Step
	step.ID, step.At = "twice", 0
	instant := h.Fault.Describe().Instant
	if !instant {
		step.For = 50 * time.Millisecond
	}
	if err := runner.Run(t.Context(), base.Now(), []chaos.Step{step}); err != nil {
		t.Fatalf("first run: %v", err)
	}
	if want := map[bool]chaos.Phase{true: chaos.PhaseDone, false: chaos.PhaseReverted}[instant]; last.Phase != want {
		t.Errorf("the first run ended as %s (%s), want %s", last.Phase, last.Evidence, want)
	}
	if err := runner.Run(t.Context(), base.Now(), []chaos.Step{step}); err == nil {
		t.Error("the same id is injected a second time")
	}
	if entries, _, err := journal.Entries(); err != nil || len(entries) != 0 {
		t.Errorf("the journal keeps %d entries, %v", len(entries), err)
	}
	if !instant {
		h.same(t, before)
	}
}

func lives(t *testing.T, h Harness) {
	t.Helper()
	before := h.State(t)
	handle := h.plan(t, "lives")
	ctx, cancel := context.WithTimeout(t.Context(), h.patience())
	defer cancel()
	if err := h.Fault.Inject(ctx, handle); err != nil {
		t.Errorf("inject: %v", err)
	}
	h.awaitEffect(t, handle)
	for _, again := range []string{"revert", "revert again"} {
		h.clean(t, again, h.Fault.Revert(ctx, handle))
	}
	h.same(t, before)
}

func survivesCancel(t *testing.T, fresh func(t *testing.T) Harness) {
	t.Helper()
	for _, after := range []time.Duration{0, 500 * time.Microsecond, 5 * time.Millisecond} {
		t.Run("after "+after.String(), func(t *testing.T) {
			h := fresh(t)
			before := h.State(t)
			handle := h.plan(t, "cut-off")
			ctx, cancel := context.WithCancel(t.Context())
			timer := time.AfterFunc(after, cancel)
			defer timer.Stop()
			if after == 0 {
				cancel()
			}
			injecting := make(chan struct{})
			go func() {
				defer close(injecting)
				_ = h.Fault.Inject(ctx, handle) // may have come through, or not
			}()
			h.clean(t, "undo", chaos.Undo(t.Context(), h.Fault, handle, injecting, h.patience()))
			h.same(t, before)
			cancel()
		})
	}
}

func recovers(t *testing.T, h Harness, inject bool) {
	t.Helper()
	before := h.State(t)
	handle := h.plan(t, "orphaned")
	ctx, cancel := context.WithTimeout(t.Context(), h.patience())
	defer cancel()
	// Whatever the recovery leaves in this process ends with the test.
	t.Cleanup(func() { h.Fault.Revert(context.WithoutCancel(ctx), handle) })
	if inject {
		if err := h.Fault.Inject(ctx, handle); err != nil {
			t.Fatalf("inject: %v", err)
		}
	}
	if h.Crash != nil {
		h.Crash(t)
	}
	h.clean(t, "recover", h.Fresh.Recover(ctx, handle))
	h.clean(t, "recover again", h.Fresh.Recover(ctx, handle))
	if h.Crash == nil {
		h.same(t, before)
	}
}
