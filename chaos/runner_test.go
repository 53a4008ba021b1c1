package chaos

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metachaos/metachaos/targets"
)

// bench is a runner over fake faults that keeps what was recorded.
type bench struct {
	*Runner
	journal *Journal
	records []Injection // written under the runner's order lock
}

func newBench(t *testing.T, guards Guards, faults map[string]*fakeFault) *bench {
	t.Helper()
	j, err := OpenJournal(t.TempDir() + "/journal")
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{journal: j}
	all := map[string]Fault{}
	for name, f := range faults {
		f.desc.Name = name
		all[name] = f
	}
	b.Runner = NewRunner(RunnerConfig{
		Faults:  all,
		Scope:   func(context.Context) (Scope, error) { return Scope{}, nil },
		Journal: j,
		Clock:   targets.NewBase(),
		Record:  func(in Injection) { b.records = append(b.records, in) },
		Guards:  guards,
	})
	return b
}

// story lists "offset phase" of one step.
func (b *bench) story(id string) []string {
	b.order.Lock()
	defer b.order.Unlock()
	var out []string
	for _, r := range b.records {
		if r.ID == id {
			out = append(out, r.At.String()+" "+string(r.Phase))
		}
	}
	return out
}

func (b *bench) evidence(id string, p Phase) string {
	for _, r := range b.records {
		if r.ID == id && r.Phase == p {
			return r.Evidence
		}
	}
	return ""
}

func (b *bench) entries(t *testing.T) []Entry {
	t.Helper()
	entries, damaged, err := b.journal.Entries()
	if err != nil || len(damaged) > 0 {
		t.Fatalf("journal: %v %v", damaged, err)
	}
	return entries
}

func want(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

func step(id, fault string, at, lasts time.Duration) Step {
	return Step{ID: id, Fault: fault, At: at, For: lasts}
}

func TestRunnerLifeCycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shake := &fakeFault{effectiveIn: 250 * time.Millisecond, injectTakes: 100 * time.Millisecond}
		poke := &fakeFault{desc: Description{Instant: true}}
		b := newBench(t, Guards{MaxDuration: time.Minute}, map[string]*fakeFault{"shake": shake, "poke": poke})
		time.Sleep(time.Second) // the load starts one second after the base
		err := b.Run(t.Context(), b.cfg.Clock.Now(), []Step{
			step("late", "poke", 3*time.Second, 0),
			step("quake", "shake", time.Second, 5*time.Second),
		})
		if err != nil {
			t.Fatal(err)
		}
		want(t, "fault", b.story("quake"), []string{"2s planned", "2s started", "2.3s effective", "7s reverting", "7s reverted"})
		want(t, "action within it", b.story("late"), []string{"4s planned", "4s started", "4s done"})
		want(t, "calls", shake.calls, []string{"plan", "inject lease=15s", "revert"})
		if e := b.evidence("quake", PhaseReverting); e != errOver.Error() {
			t.Errorf("reverting because %q", e)
		}
		if _, err := os.Stat(b.journal.Dir()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the journal's folder is still there: %v", err)
		}
		if len(b.Active()) != 0 {
			t.Errorf("still active: %v", b.Active())
		}
	})
}

func TestRunnerJournalsBeforeItActs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeFault{injectTakes: time.Second}
		b := newBench(t, Guards{}, map[string]*fakeFault{"shake": f})
		done := make(chan error)
		go func() { done <- b.Run(t.Context(), 0, []Step{step("q", "shake", 0, 5*time.Second)}) }()
		time.Sleep(500 * time.Millisecond) // in the middle of Inject
		entries := b.entries(t)
		if len(entries) != 1 || entries[0].Injection.Phase != PhaseStarted || entries[0].Injection.Handle.ID != "q" ||
			!entries[0].Controller.Alive() {
			t.Errorf("while injecting the journal holds %+v", entries)
		}
		if a := b.Active(); len(a) != 1 || a[0].ID != "q" || a[0].Phase != PhaseStarted {
			t.Errorf("active: %+v", a)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestRunnerTouchesNothingWithoutJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeFault{}
		b := newBench(t, Guards{}, map[string]*fakeFault{"shake": f})
		if err := os.WriteFile(b.journal.Dir(), nil, 0o600); err != nil { // a file in the folder's place
			t.Fatal(err)
		}
		if err := b.Run(t.Context(), 0, []Step{step("q", "shake", 0, time.Second)}); err == nil {
			t.Error("no error although the journal cannot be written")
		}
		want(t, "calls", f.calls, []string{"plan"})
		want(t, "story", b.story("q"), []string{"0s planned", "0s failed"})
	})
}

func TestRunnerTakesEverythingBackOnCancel(t *testing.T) {
	tests := []struct {
		name  string
		fault *fakeFault
		cut   time.Duration
		story []string
	}{
		{"while effective", &fakeFault{}, 3 * time.Second,
			[]string{"1s planned", "1s started", "1s effective", "3s reverting", "3s reverted"}},
		{"while injecting", &fakeFault{injectTakes: 10 * time.Second}, 3 * time.Second,
			[]string{"1s planned", "1s started", "3s reverting", "3s reverted"}},
		// Inject returns 2 s after it was told to; only then the undo may count.
		{"while injecting deafly", &fakeFault{injectTakes: 4 * time.Second, ignoreCancel: true}, 3 * time.Second,
			[]string{"1s planned", "1s started", "3s reverting", "5s reverted"}},
		{"before it begins", &fakeFault{}, 500 * time.Millisecond, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, Guards{}, map[string]*fakeFault{"shake": tt.fault})
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(tt.cut, func() { cancel(errors.New("enough")) })
				err := b.Run(ctx, 0, []Step{step("q", "shake", time.Second, time.Minute)})
				var cut *StepError
				if !errors.As(err, &cut) || !strings.Contains(err.Error(), "enough") || len(Stuck(err)) > 0 {
					t.Errorf("got error %v, want a StepError that names the cause", err)
				}
				got := b.story("q")
				got = slices.DeleteFunc(got, func(s string) bool { return strings.HasSuffix(s, "failed") })
				want(t, "story", got, tt.story)
				if tt.fault.active {
					t.Error("the fault is still active")
				}
				if n := len(b.entries(t)); n != 0 {
					t.Errorf("%d journal entries left", n)
				}
			})
		})
	}
}

func TestRunnerRevertsPartialInjection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeFault{injectTakes: time.Second, injectErr: errors.New("half way")}
		b := newBench(t, Guards{}, map[string]*fakeFault{"shake": f})
		err := b.Run(t.Context(), 0, []Step{step("q", "shake", 0, time.Minute)})
		if err == nil || !strings.Contains(err.Error(), "step q (shake): half way") {
			t.Errorf("error: %v", err)
		}
		want(t, "story", b.story("q"), []string{"0s planned", "0s started", "1s failed", "1s reverting", "1s reverted"})
		if f.active {
			t.Error("the fault is still active")
		}
	})
}

func TestRunnerReportsStuckReverts(t *testing.T) {
	left := Reversal{Undone: NotReverted, Evidence: "toy still shakes", HowTo: "hold it"}
	tests := []struct {
		name     string
		fault    *fakeFault
		last     Phase
		evidence string
		reverts  int
	}{
		{"never clean", &fakeFault{reversals: []Reversal{left}}, PhaseNotReverted, "toy still shakes (gave up after attempt 8)", 8},
		{"says nothing", &fakeFault{reversals: []Reversal{{}}}, PhaseUnknown, "gave up", 8},
		{"does not return", &fakeFault{revertTakes: time.Hour, revertIgnores: true}, PhaseUnknown, "has not returned", 1},
		{"is slow", &fakeFault{revertTakes: time.Hour}, PhaseUnknown, "interrupted", 1},
		{"inject does not return", &fakeFault{injectTakes: time.Hour, ignoreCancel: true}, PhaseUnknown, "Inject has not returned", 7},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				other := &fakeFault{}
				b := newBench(t, Guards{MaxConcurrent: 2}, map[string]*fakeFault{"shake": tt.fault, "other": other})
				began := time.Now()
				err := b.Run(t.Context(), 0, []Step{
					step("q", "shake", 0, time.Second),
					step("beside", "other", 500*time.Millisecond, time.Second),
					step("after", "other", 5*time.Minute, time.Second),
				})
				stuck := Stuck(err)
				if len(stuck) != 1 || stuck[0].ID != "q" || stuck[0].Reversal.HowTo == "" {
					t.Fatalf("stuck: %v of %v", stuck, err)
				}
				if took := time.Since(began); took > time.Minute {
					t.Errorf("gave up only after %v", took)
				}
				if n := tt.fault.count("revert"); n != tt.reverts {
					t.Errorf("%d reverts, want %d", n, tt.reverts)
				}
				if e := b.evidence("q", tt.last); !strings.Contains(e, tt.evidence) {
					t.Errorf("evidence of %s is %q, want %q; story %q", tt.last, e, tt.evidence, b.story("q"))
				}
				want(t, "a slow revert holds up no other", b.story("beside"), []string{
					"500ms planned", "500ms started", "500ms effective", "1.5s reverting", "1.5s reverted"})
				want(t, "nothing begins after", b.story("after"), nil)
				entries := b.entries(t)
				if len(entries) != 1 || entries[0].Injection.Phase != tt.last {
					t.Errorf("journal: %+v, want the stuck injection as %s", entries, tt.last)
				}
				time.Sleep(3 * time.Hour) // let the deaf calls of the fakes end
			})
		})
	}
}

func TestRunnerRetriesRevert(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeFault{reversals: []Reversal{{Undone: RevertUnknown}, {Undone: NotReverted}, {Undone: Reverted, Evidence: "third time"}}}
		b := newBench(t, Guards{}, map[string]*fakeFault{"shake": f})
		if err := b.Run(t.Context(), 0, []Step{step("q", "shake", 0, time.Second)}); err != nil {
			t.Fatal(err)
		}
		want(t, "story", b.story("q"), []string{"0s planned", "0s started", "0s effective", "1s reverting", "1.6s reverted"})
	})
}

func TestRunnerBoundsByLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeFault{injectTakes: time.Hour}
		b := newBench(t, Guards{MaxDuration: 10 * time.Second}, map[string]*fakeFault{"shake": f})
		// Longer than the guard allows, as if nobody had checked.
		err := b.Run(t.Context(), 0, []Step{step("q", "shake", 0, time.Hour)})
		if err == nil || !strings.Contains(err.Error(), "lease lapsed") {
			t.Errorf("error: %v", err)
		}
		f.injectTakes = 0
		if err = b.Run(t.Context(), b.cfg.Clock.Now(), []Step{step("r", "shake", 0, time.Hour)}); !errors.Is(err, errLapsed) {
			t.Errorf("error: %v", err)
		}
		want(t, "story", b.story("r"), []string{"10s planned", "10s started", "10s effective", "20s reverting", "20s reverted"})
	})
}

func TestRunnerRefusesIDTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeFault{}
		b := newBench(t, Guards{MaxConcurrent: 2}, map[string]*fakeFault{"shake": f})
		err := b.Run(t.Context(), 0, []Step{step("q", "shake", 0, time.Second), step("q", "shake", 0, time.Second)})
		if err == nil || !strings.Contains(err.Error(), "one injection per id") {
			t.Errorf("error: %v", err)
		}
		if f.count("plan") != 1 {
			t.Errorf("calls: %q", f.calls)
		}
	})
}

func TestRunnerSaysWhenNothingWasSeen(t *testing.T) {
	tests := []struct {
		name  string
		fault *fakeFault
		want  string
	}{
		{"not yet", &fakeFault{effectiveIn: time.Hour}, "never seen effective: toy gauge"},
		{"errors", &fakeFault{effectiveIn: -1}, "never seen effective: no signal"},
		{"hangs", &fakeFault{statusHangs: true}, "never seen effective: its status was never told"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, Guards{}, map[string]*fakeFault{"shake": tt.fault})
				if err := b.Run(t.Context(), 0, []Step{step("q", "shake", 0, time.Second)}); err != nil {
					t.Fatal(err)
				}
				want(t, "story", b.story("q"), []string{"0s planned", "0s started", "1s reverting", "1s reverted"})
				if e := b.evidence("q", PhaseReverting); !strings.Contains(e, tt.want) {
					t.Errorf("evidence %q, want %q", e, tt.want)
				}
				time.Sleep(2 * time.Hour) // let the fake's hanging call end
			})
		})
	}
}

func TestRunnerKeepsToMaxConcurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, next := &fakeFault{revertTakes: 2 * time.Second}, &fakeFault{}
		b := newBench(t, Guards{MaxConcurrent: 1}, map[string]*fakeFault{"slow": slow, "next": next})
		err := b.Run(t.Context(), 0, []Step{step("a", "slow", 0, time.Second), step("b", "next", time.Second, time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		want(t, "waits for the slow revert", b.story("b")[:2], []string{"3s planned", "3s started"})
	})
}

func TestRunnerActions(t *testing.T) {
	tests := []struct {
		name  string
		fault *fakeFault
		story []string
		fails bool
	}{
		{"fails", &fakeFault{injectErr: errors.New("no")}, []string{"0s planned", "0s started", "0s failed"}, true},
		{"plan fails", &fakeFault{planErr: errors.New("selects nothing")}, []string{"0s failed"}, true},
		{"never returns", &fakeFault{injectTakes: time.Hour, ignoreCancel: true}, []string{"0s planned", "0s started", "15s failed"}, true},
		{"effect not readable", &fakeFault{effectiveIn: -1}, []string{"0s planned", "0s started", "0s done"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.fault.desc.Instant = true
				b := newBench(t, Guards{MaxDuration: 10 * time.Second}, map[string]*fakeFault{"poke": tt.fault})
				err := b.Run(t.Context(), 0, []Step{step("p", "poke", 0, 0)})
				if (err != nil) != tt.fails {
					t.Errorf("error: %v", err)
				}
				want(t, "story", b.story("p"), tt.story)
				if tt.fault.count("revert") != 0 {
					t.Error("an action was reverted")
				}
				time.Sleep(2 * time.Hour)
			})
		})
	}
}

// A live view may be asked to draw by the very line that a record prints.
func TestARecorderMayAskWhatIsActive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Guards{}, map[string]*fakeFault{"toy.shake": {}})
		var seen []string
		b.cfg.Record = func(in Injection) {
			for _, a := range b.Active() {
				seen = append(seen, a.ID+" "+string(a.Phase))
			}
		}
		if err := b.Run(t.Context(), 0, []Step{{ID: "a", Fault: "toy.shake", For: time.Second}}); err != nil {
			t.Fatal(err)
		}
		if len(seen) == 0 || seen[0] != "a planned" {
			t.Errorf("a recorder saw %q active, want the step in its first phase", seen)
		}
	})
}
