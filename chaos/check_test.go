package chaos

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/metachaos/metachaos/targets"
)

func TestCheck(t *testing.T) {
	faults := map[string]Fault{
		"toy.shake": &fakeFault{desc: Description{Name: "toy.shake", Rule: "toy.shake",
			Needs: []targets.Capability{targets.CapRules}}},
		"toy.poke":  &fakeFault{desc: Description{Name: "toy.poke", Instant: true}},
		"toy.bad":   &fakeFault{desc: Description{Name: "toy.bad"}, validate: errors.New("share is 7: want 0 to 1")},
		"toy.needy": &fakeFault{desc: Description{Name: "toy.needy"}, needs: []targets.Capability{targets.CapProxy}},
	}
	offer := Offer{Info: targets.Info{Kind: "toy", Capabilities: []targets.Capability{targets.CapRules}},
		Rules: []string{"toy.shake"}}
	shake := func(id string, at, lasts time.Duration) Step {
		return Step{ID: id, Fault: "toy.shake", At: at * time.Second, For: lasts * time.Second}
	}
	tests := []struct {
		name   string
		steps  []Step
		guards Guards
		offer  *Offer
		want   []string // one fragment per error, in order
	}{
		{name: "nothing wrong", steps: []Step{shake("a", 1, 2), {ID: "p", Fault: "toy.poke", At: 2 * time.Second}}},
		{name: "misspelt", steps: []Step{{ID: "a", Fault: "toy.shaek", For: 1}},
			want: []string{`step a (toy.shaek): no such fault or action: did you mean "toy.shake"?`}},
		{name: "unlike any", steps: []Step{{ID: "a", Fault: "earthquake", For: 1}},
			want: []string{"known: toy.bad, toy.needy, toy.poke, toy.shake"}},
		{name: "no id", steps: []Step{shake("", 0, 1)}, want: []string{"id is missing"}},
		{name: "id twice", steps: []Step{shake("a", 0, 1), shake("a", 5, 1)}, want: []string{`id "a" stands twice`}},
		{name: "before the start", steps: []Step{shake("a", -1, 1)}, want: []string{"at is -1s"}},
		{name: "no for", steps: []Step{shake("a", 0, 0)}, want: []string{"for is missing"}},
		{name: "for on an action", steps: []Step{{ID: "p", Fault: "toy.poke", For: 1}}, want: []string{"leave for out"}},
		{name: "too long", steps: []Step{shake("a", 0, 61)}, guards: Guards{MaxDuration: time.Minute},
			want: []string{"guards.max_duration allows (1m0s)"}},
		{name: "too long by default", steps: []Step{shake("a", 0, 601)}, want: []string{"guards.max_duration"}},
		{name: "bad configuration", steps: []Step{{ID: "b", Fault: "toy.bad", For: 1}}, want: []string{"share is 7"}},
		{name: "capability by configuration", steps: []Step{{ID: "n", Fault: "toy.needy", For: 1}},
			want: []string{`capability "proxy", which the target "toy" lacks`}},
		{name: "capability and rule", steps: []Step{shake("a", 0, 1)}, offer: &Offer{Info: targets.Info{Kind: "bare"}, Rules: []string{}},
			want: []string{`capability "rules"`, `takes no rule "toy.shake"`}},
		{name: "rules not known yet", steps: []Step{shake("a", 0, 1)}, offer: &Offer{Info: offer.Info}},
		// [0,5) and [5,10) do not overlap.
		{name: "back to back", steps: []Step{shake("a", 0, 5), shake("b", 5, 5)}},
		{name: "overlap", steps: []Step{shake("a", 0, 6), shake("b", 5, 5)},
			want: []string{"step b (toy.shake): at 5s a would still be active"}},
		// The later step in time is blamed, wherever it stands in the plan.
		{name: "overlap unsorted", steps: []Step{shake("b", 5, 5), shake("a", 0, 6)},
			want: []string{"step b (toy.shake): at 5s a would still be active"}},
		{name: "same start", steps: []Step{shake("a", 1, 1), shake("b", 1, 1)}, want: []string{"step b"}},
		{name: "overlap allowed", steps: []Step{shake("a", 0, 6), shake("b", 5, 5)}, guards: Guards{MaxConcurrent: 2}},
		{name: "actions do not count", steps: []Step{shake("a", 0, 6), {ID: "p", Fault: "toy.poke", At: time.Second}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := offer
			if tt.offer != nil {
				o = *tt.offer
			}
			err := Check(tt.steps, faults, tt.guards, o)
			var errs StepErrors
			if err != nil && !errors.As(err, &errs) {
				t.Fatalf("Check gave %T, want StepErrors", err)
			}
			if len(errs) != len(tt.want) {
				t.Fatalf("got %d errors, want %d:\n%v", len(errs), len(tt.want), err)
			}
			for i, want := range tt.want {
				if !strings.Contains(errs[i].Error(), want) {
					t.Errorf("error %d is %q, want it to say %q", i, errs[i], want)
				}
			}
		})
	}
}
