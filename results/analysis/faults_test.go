package analysis

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metachaos/metachaos/chaos"
)

func TestFaultStates(t *testing.T) {
	phase := func(ms int, id string, p chaos.Phase) chaos.Injection {
		return chaos.Injection{At: at(ms), ID: id, Phase: p, Instant: strings.HasPrefix(id, "act"), HowTo: "by hand"}
	}
	tally := newFaultTally([]string{"absent"})
	for i, r := range []chaos.Injection{
		phase(1, "act", chaos.PhaseStarted), phase(2, "act", chaos.PhaseDone),
		phase(3, "retried", chaos.PhaseStarted), phase(6, "retried", chaos.PhaseReverted), phase(5, "retried", chaos.PhaseNotReverted),
		phase(4, "stuck", chaos.PhaseStarted), phase(8, "stuck", chaos.PhaseUnknown),
		phase(5, "crashed", chaos.PhaseStarted),
		phase(6, "act-failed", chaos.PhaseStarted), phase(7, "act-failed", chaos.PhaseFailed),
	} {
		tally.add(i+1, r)
	}
	var got []string
	for _, f := range tally.reports() {
		got = append(got, f.ID+" "+string(f.State)+" "+f.HowTo)
	}
	want := []string{"act done ", "retried reverted ", "stuck unknown by hand", "crashed active ", "act-failed failed ", "absent not-started "}
	if !slices.Equal(got, want) {
		t.Errorf("states = %q, want %q", got, want)
	}
	for _, f := range tally.reports() {
		if f.TookEffect() != (f.ID == "act") {
			t.Errorf("%s took effect: %v", f.ID, f.TookEffect())
		}
	}
}

func TestSpans(t *testing.T) {
	offset := func(ms int) *time.Duration { d := at(ms); return &d }
	faults := []FaultReport{
		{ID: "a", Started: offset(4000), Effective: offset(4100), Ended: offset(6000)},
		{ID: "b", Started: offset(5000)},
		{ID: "c"},
	}
	var got []string
	for _, s := range spans(at(1000), at(9000), faults) {
		text := s.window.String() + " " + s.from.String() + " " + s.to.String()
		if s.open {
			text += " open"
		}
		got = append(got, text)
	}
	want := []string{"whole 1s 9s open", "baseline 1s 4s", "during a 4s 6s", "after a 6s 9s open", "during b 5s 9s open"}
	if !slices.Equal(got, want) {
		t.Errorf("spans = %q, want %q", got, want)
	}
}
