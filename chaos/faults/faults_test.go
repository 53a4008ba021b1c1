package faults

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/metachaos/metachaos/chaos"
	"github.com/metachaos/metachaos/chaos/chaostest"
	"github.com/metachaos/metachaos/targets"
)

func TestRuleCarriesTheStep(t *testing.T) {
	f := newFakeTarget(t)
	drop := PushDrop(f, Options{})
	h := mustPlan(t, f, drop, "lose", "{share: 0.25, count: 3, object: route/r1, client: c}", targets.Selector{})
	if err := drop.Inject(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	r := f.rules["lose"]
	if r.Name != "push.drop" || r.Lease != time.Minute || len(r.With) != 4 ||
		r.With["share"] != "0.25" || r.With["count"] != "3" || r.With["object"] != "route/r1" || r.With["client"] != "c" {
		t.Errorf("the rule is %+v", r.Rule)
	}
	if s, err := drop.Status(t.Context(), h); err != nil || s.Effective {
		t.Errorf("before any push: %+v, %v", s, err)
	}
}

func TestRuleReversals(t *testing.T) {
	tests := []struct {
		name   string
		adjust func(f *fakeTarget)
		want   chaos.Undone
		says   string
	}{
		{"cleared", func(f *fakeTarget) { f.act(nil) }, chaos.Reverted, "acted on 1 of 2"},
		{"no answer", func(f *fakeTarget) { f.ruleErr = errors.New("no route") }, chaos.RevertUnknown, "no route"},
		{"no answer from the dead", func(f *fakeTarget) { f.ruleErr = errors.New("no route"); f.crash(nil) }, chaos.Reverted, "gone"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFakeTarget(t)
			drop := PushDrop(f, Options{})
			h := mustPlan(t, f, drop, "lose", "", targets.Selector{})
			if err := drop.Inject(t.Context(), h); err != nil {
				t.Fatal(err)
			}
			tt.adjust(f)
			rev := drop.Revert(t.Context(), h)
			if rev.Undone != tt.want || !strings.Contains(rev.Evidence, tt.says) || (rev.HowTo == "") != (tt.want == chaos.Reverted) {
				t.Errorf("reversal %+v", rev)
			}
		})
	}
}

func TestRuleRecoveryWaitsForTheLease(t *testing.T) {
	f := newFakeTarget(t)
	drop := PushDrop(f, Options{})
	fresh := PushDrop(nil, Options{})
	h := mustPlan(t, f, drop, "lose", "", targets.Selector{})

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if rev := fresh.Recover(ctx, h); rev.Undone != chaos.RevertUnknown || !strings.Contains(rev.HowTo, "(s1-0)") {
		t.Errorf("while the lease lasts: %+v", rev)
	}
	h.Lease = 100*time.Millisecond - leaseSlack // lapses 100 ms after planning
	if rev := fresh.Recover(t.Context(), h); rev.Undone != chaos.Reverted || !strings.Contains(rev.Evidence, "lapsed") {
		t.Errorf("after the lease: %+v", rev)
	}
}

// A target in memory dies with its controller, and its rules with it.
func TestRuleOfATargetInMemoryIsHeldByTheController(t *testing.T) {
	r := ruling{}
	inMemory := chaos.Scope{Topology: targets.Topology{Nodes: []targets.Node{{ID: "s1-0"}}}}
	if got, err := r.holders(inMemory); err != nil || len(got) != 1 || got[0].PID != os.Getpid() {
		t.Errorf("holders %v, %v; want this process", got, err)
	}
	remote := chaos.Scope{Topology: targets.Topology{Nodes: []targets.Node{{ID: "s1-0", Addr: "10.0.0.1:1"}}}}
	if got, err := r.holders(remote); err != nil || len(got) != 0 {
		t.Errorf("holders %v, %v; want none known", got, err)
	}
	if (ruleState{}).gone() {
		t.Error("a rule without known holders counts as gone")
	}
}

func TestRestartTellsProcessesApart(t *testing.T) {
	f := newFakeTarget(t)
	restart := NodeRestart(f)
	h := mustPlan(t, f, restart, "bounce", "", targets.Selector{Node: "s1-1"})
	if s, err := restart.Status(t.Context(), h); err != nil || s.Effective {
		t.Errorf("before: %+v, %v", s, err)
	}
	if err := restart.Inject(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if s, err := restart.Status(t.Context(), h); err != nil || !s.Effective {
		t.Errorf("after: %+v, %v", s, err)
	}
}

func TestMigrationLeavesOrphansUntilItEnds(t *testing.T) {
	f := newFakeTarget(t)
	migrate := ShardMigrate(f)
	h := mustPlan(t, f, migrate, "move", "{objects: [route/r0, route/r2], to: s2}", targets.Selector{})
	if err := migrate.Inject(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	for o, stage := range f.stages {
		if stage != targets.StageHandedOver || f.entries[o].Owner != "s2" || f.entries[o].Epoch != 4 {
			t.Errorf("%s is %s, %+v", o, stage, f.entries[o])
		}
	}
	if err := migrate.Inject(t.Context(), h); err == nil {
		t.Error("injected twice")
	}
	if s, err := migrate.Status(t.Context(), h); err != nil || !s.Effective || len(f.stages) != 2 {
		t.Errorf("status %+v, %v with %v", s, err, f.stages)
	}
	if rev := migrate.Revert(t.Context(), h); rev.Undone != chaos.Reverted || len(f.stages) != 0 {
		t.Errorf("reversal %+v left %v", rev, f.stages)
	}
	if rev := ShardMigrate(nil).Recover(t.Context(), h); rev.Undone != chaos.RevertUnknown || !strings.Contains(rev.HowTo, "end the target's processes") {
		t.Errorf("recovery beside living processes: %+v", rev)
	}
}

// Half a migration is completed; what never began is left where it is.
func TestMigrationThatFailsHalfWay(t *testing.T) {
	for _, stage := range []targets.Stage{targets.StageCopied, targets.StageHandedOver, targets.StageCleaned} {
		t.Run(string(stage), func(t *testing.T) {
			f := newFakeTarget(t)
			migrate := ShardMigrate(f)
			h := mustPlan(t, f, migrate, "move", "{objects: [route/r0, route/r2], to: s2}", targets.Selector{})
			f.migrateErr[stage] = errors.New("no space")
			err := migrate.Inject(t.Context(), h)
			if (err != nil) != (stage != targets.StageCleaned) {
				t.Fatalf("inject: %v", err)
			}
			rev := migrate.Revert(t.Context(), h)
			if stage == targets.StageCleaned {
				if rev.Undone != chaos.NotReverted || rev.HowTo == "" {
					t.Errorf("with an error: %+v", rev)
				}
				f.migrateErr = map[targets.Stage]error{}
				rev = migrate.Revert(t.Context(), h)
			}
			if rev.Undone != chaos.Reverted || len(f.stages) != 0 {
				t.Errorf("reversal %+v left %v", rev, f.stages)
			}
			untouched := targets.Object{Kind: targets.KindRoute, ID: "r2"}
			if stage == targets.StageCopied && f.entries[untouched].Owner != "s1" {
				t.Error("an object whose migration never began was moved")
			}
		})
	}
}

func TestPushProxyTakesTheLinkOnce(t *testing.T) {
	f := newFakeTarget(t)
	f.link = newFakeLink(t)
	drop := PushDrop(f, Options{})
	first := mustPlan(t, f, drop, "first", "via: proxy", targets.Selector{})
	second := mustPlan(t, f, drop, "second", "via: proxy", targets.Selector{})
	if err := drop.Inject(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if err := drop.Inject(t.Context(), second); err == nil || !strings.Contains(err.Error(), `"first"`) {
		t.Errorf("a second proxy in the link: %v", err)
	}
	if rev := drop.Revert(t.Context(), second); rev.Undone != chaos.Reverted || f.link.via == f.link.addr {
		t.Errorf("reverting the second gave %+v, and the link goes by way of %s", rev, f.link.via)
	}
	before := f.link.received.Load()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		f.link.push(t)
		if s, err := drop.Status(t.Context(), first); err == nil && s.Effective {
			break
		} else if time.Now().After(end) {
			t.Fatalf("nothing was dropped: %+v, %v", s, err)
		}
	}
	if n := f.link.received.Load() - before; n != 0 {
		t.Errorf("%d pushes came through", n)
	}
	// A link that cannot be led back is said so, and drops nothing any more.
	f.link.dead = errors.New("stuck")
	if rev := drop.Revert(t.Context(), first); rev.Undone != chaos.NotReverted || !strings.Contains(rev.Evidence, "drops nothing any more: stuck") {
		t.Errorf("reversal %+v", rev)
	}
	f.link.push(t)
	f.await(t, "a push passes the disarmed proxy", func() bool { return f.link.received.Load() > before })
	f.link.dead = nil
	if rev := drop.Revert(t.Context(), first); rev.Undone != chaos.Reverted || f.link.via != f.link.addr {
		t.Errorf("reversal %+v, by way of %s", rev, f.link.via)
	}
	controller := PushDrop(nil, Options{})
	if rev := controller.Recover(t.Context(), first); rev.Undone != chaos.NotReverted { // this process lives
		t.Errorf("recovery beside a living controller: %+v", rev)
	}
}

func (f *fakeTarget) await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("still not so: %s", what)
		}
	}
}

// A whole timeline with two overlapping faults and an action, on real
// processes and the real clock.
func TestTimelineOnProcesses(t *testing.T) {
	f := newFakeTarget(t)
	before := f.state(t)
	journal, err := chaos.OpenJournal(t.TempDir() + "/journal")
	if err != nil {
		t.Fatal(err)
	}
	all := All(f, Options{})
	steps := []chaos.Step{
		{ID: "freeze", Fault: "primary.freeze", At: 10 * time.Millisecond, For: 1500 * time.Millisecond, On: s1},
		{ID: "move", Fault: "shard.migrate", At: 50 * time.Millisecond, For: time.Second, Decode: chaostest.With("count: 2")},
	}
	info := targets.Info{Kind: "fake", Capabilities: []targets.Capability{targets.CapProcesses, targets.CapMigrate, targets.CapFetch}}
	guards := chaos.Guards{MaxConcurrent: 2}
	if err := chaos.Check(steps, all, guards, chaos.Offer{Info: info}); err != nil {
		t.Fatal(err)
	}
	var story []string
	base := targets.NewBase()
	runner := chaos.NewRunner(chaos.RunnerConfig{Faults: all, Scope: f.scope, Journal: journal, Clock: base, Guards: guards,
		Record: func(in chaos.Injection) { story = append(story, in.ID+" "+string(in.Phase)) }})
	if err := runner.Run(t.Context(), base.Now(), steps); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"freeze", "move"} {
		var phases []string
		for _, line := range story {
			if rest, ok := strings.CutPrefix(line, id+" "); ok {
				phases = append(phases, rest)
			}
		}
		if got := strings.Join(phases, " "); got != "planned started effective reverting reverted" {
			t.Errorf("%s: %s", id, got)
		}
	}
	if now := f.state(t); now != before {
		t.Errorf("the state is\n%s\nand was\n%s", now, before)
	}
}
