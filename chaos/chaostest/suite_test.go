package chaostest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metachaos/metachaos/chaos"
	"github.com/metachaos/metachaos/targets"
)

// bugVariable makes the toy fault of this test binary break one promise.
const bugVariable = "CHAOSTEST_BUG"

// toy is a fault that raises a flag, with one bug at most.
type toy struct {
	bug  string
	mu   sync.Mutex
	flag bool
	once bool // it was raised before
}

var _ chaos.Fault = (*toy)(nil)

func (f *toy) Describe() chaos.Description {
	d := chaos.Description{Name: "toy.flag", Summary: "Raises a flag.", Fields: []chaos.Field{{Name: "high", Type: "bool", Summary: "How."}}}
	if f.bug == "says nothing" {
		d.Summary = ""
	}
	return d
}

func (f *toy) Validate(s chaos.Step) error {
	var c struct {
		High bool `yaml:"high"`
	}
	err := s.Decode(&c)
	switch {
	case f.bug == "accepts anything":
		return nil
	case f.bug == "hides the place" && err != nil:
		return errors.New("bad configuration")
	}
	return err
}

func (f *toy) Plan(_ context.Context, s chaos.Step, scope chaos.Scope) (chaos.Handle, error) {
	if f.bug == "touches while planning" {
		f.raise(true)
	}
	if len(scope.Topology.Select(s.On)) == 0 && f.bug != "selects nothing" {
		return chaos.Handle{}, errors.New("it selects nothing")
	}
	h := chaos.Handle{ID: s.ID, Fault: s.Fault, Touches: []string{"the flag"}}
	if f.bug == "names nothing" {
		h.Touches = nil
	}
	return h, nil
}

func (f *toy) Inject(ctx context.Context, _ chaos.Handle) error {
	f.raise(true)
	return ctx.Err()
}

func (f *toy) Status(context.Context, chaos.Handle) (chaos.Status, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return chaos.Status{Effective: f.flag && f.bug != "is never effective", Evidence: "the flag"}, nil
}

func (f *toy) Revert(context.Context, chaos.Handle) chaos.Reversal {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.bug == "cannot revert twice" && f.once && !f.flag {
		return chaos.Reversal{Undone: chaos.NotReverted, Evidence: "no flag", HowTo: "nothing"}
	}
	if f.bug != "pretends to revert" {
		f.flag = false
	}
	return chaos.Reversal{Undone: chaos.Reverted, Evidence: "the flag is down"}
}

func (f *toy) Recover(ctx context.Context, h chaos.Handle) chaos.Reversal {
	if f.bug == "pretends to recover" {
		return chaos.Reversal{Undone: chaos.Reverted, Evidence: "surely"}
	}
	return f.Revert(ctx, h)
}

func (f *toy) raise(up bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.flag, f.once = up, true
}

// TestToy runs the suite over the toy, which keeps every promise unless the
// variable names a bug.
func TestToy(t *testing.T) {
	Run(t, func(t *testing.T) Harness {
		t.Helper()
		f := &toy{bug: os.Getenv(bugVariable)}
		step := chaos.Step{ID: "try", Fault: "toy.flag", Decode: With("high: true")}
		nothing := step
		nothing.On.Node = "nowhere"
		return Harness{Fault: f, Fresh: f, Step: step, Nothing: nothing, Patience: 300 * time.Millisecond,
			Scope: func(context.Context) (chaos.Scope, error) {
				return chaos.Scope{Topology: targets.Topology{Nodes: []targets.Node{{ID: "n"}}}}, nil
			},
			State: func(*testing.T) string {
				f.mu.Lock()
				defer f.mu.Unlock()
				return map[bool]string{true: "up", false: "down"}[f.flag]
			}}
	})
}

// TestSuiteCatches runs TestToy in a process of its own for each bug, since a
// failure of the suite is a failure of its test.
func TestSuiteCatches(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for bug, want := range map[string]string{
		"says nothing":           "want a summary",
		"accepts anything":       "is accepted",
		"hides the place":        "has no line and column",
		"selects nothing":        "a step that selects nothing is planned",
		"touches while planning": "plans_without_touching",
		"names nothing":          "does not say what would be touched",
		"is never effective":     "never effective",
		"cannot revert twice":    "revert again: {Undone:not-reverted",
		"pretends to revert":     "takes_effect_and_is_reverted",
		"pretends to recover":    "recovers_in_a_fresh_instance",
	} {
		t.Run(bug, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestToy$")
			cmd.Env = append(os.Environ(), bugVariable+"="+bug)
			out, err := cmd.CombinedOutput()
			var failed *exec.ExitError
			if !errors.As(err, &failed) || !strings.Contains(string(out), want) {
				t.Errorf("the suite ended with %v and did not say %q:\n%s", err, want, out)
			}
		})
	}
}
