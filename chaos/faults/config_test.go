package faults

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/metachaos/metachaos/chaos"
	"github.com/metachaos/metachaos/chaos/chaostest"
	"github.com/metachaos/metachaos/targets"
)

func TestValidateSaysWhatIsWrong(t *testing.T) {
	primaryOnly := targets.Selector{Shard: "s1", Role: targets.RoleSecondary}
	tests := []struct {
		fault, with string
		on          targets.Selector
		want        string // empty: valid
	}{
		{"push.drop", "", targets.Selector{}, ""},
		{"push.drop", "share: 0", targets.Selector{}, "share is 0: want more than 0 and at most 1"},
		{"push.drop", "share: 1.01", targets.Selector{}, "at most 1"},
		{"push.drop", "share: .nan", targets.Selector{}, "share is NaN"},
		{"push.drop", "count: -1", targets.Selector{}, "with:1:8"},
		{"push.drop", "via: pigeon", targets.Selector{}, `via is "pigeon": want control or proxy`},
		{"push.drop", "object: r1", targets.Selector{}, "want kind/id"},
		{"push.drop", "method: Watch", targets.Selector{}, "via: proxy alone"},
		{"push.drop", "{via: proxy, client: c1}", targets.Selector{}, "need via: control"},
		{"push.drop", "via: proxy", targets.Selector{Shard: "s1"}, "leave on out"},
		{"push.drop", "via: proxy", targets.Selector{}, ""},
		{"ttl.synchronize", "in: -1s", targets.Selector{}, "in is -1s"},
		{"ttl.synchronize", "in: soon", targets.Selector{}, `invalid duration "soon"`},
		{"primary.freeze", "mode: thaw", targets.Selector{}, "want stop or write-stall"},
		{"primary.freeze", "", primaryOnly, "strikes primaries"},
		{"primary.freeze", "max_nodes: 0", targets.Selector{}, "want 1 or more"},
		{"node.restart", "max_nodes: 0", targets.Selector{}, "want 1 or more"},
		{"shard.migrate", "{object: route/r1, share: 0.5}", targets.Selector{}, "exclude one another"},
		{"shard.migrate", "share: 2", targets.Selector{}, "at most 1"},
		{"shard.migrate", "count: -2", targets.Selector{}, "count is -2"},
		{"shard.migrate", "objects: [route/r1, r2]", targets.Selector{}, "want kind/id"},
		{"shard.migrate", "from: s2", targets.Selector{Shard: "s1"}, "want one of them"},
		{"shard.migrate", "to: s1", targets.Selector{Shard: "s1"}, "want two shards"},
		{"shard.migrate", "", targets.Selector{Role: targets.RolePrimary}, "objects belong to shards"},
	}
	all := All(nil, Options{}) // no live target is needed
	for _, tt := range tests {
		t.Run(tt.fault+" "+tt.with, func(t *testing.T) {
			err := all[tt.fault].Validate(chaos.Step{ID: "x", Fault: tt.fault, On: tt.on, Decode: chaostest.With(tt.with)})
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestNeedsFollowTheConfiguration(t *testing.T) {
	tests := []struct {
		fault, with string
		need        targets.Capability
		rule        string
	}{
		{"push.drop", "", targets.CapRules, "push.drop"},
		{"push.drop", "via: proxy", targets.CapProxy, ""},
		{"primary.freeze", "", targets.CapProcesses, ""},
		{"primary.freeze", "mode: write-stall", targets.CapRules, "primary.freeze"},
	}
	for _, tt := range tests {
		f := All(nil, Options{})[tt.fault].(chaos.StepNeeds)
		needs, rule := f.NeedsOf(chaos.Step{Decode: chaostest.With(tt.with)})
		if !slices.Equal(needs, []targets.Capability{tt.need}) || rule != tt.rule {
			t.Errorf("%s %s needs %v and the rule %q", tt.fault, tt.with, needs, rule)
		}
	}
}

func TestPlanWithoutTargetSaysSo(t *testing.T) {
	for name, f := range All(nil, Options{}) {
		step := chaos.Step{ID: "x", Fault: name, On: targets.Selector{Shard: "s1"}, For: 1}
		if name == "primary.freeze" {
			step.Decode = chaostest.With("mode: write-stall")
		}
		scope := chaos.Scope{Topology: targets.Topology{Nodes: []targets.Node{{ID: "s1-0", Shard: "s1", Role: targets.RolePrimary}}}}
		if _, err := f.Plan(t.Context(), step, scope); err == nil || !strings.Contains(err.Error(), "live target") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestSelectNodesKeepsToItsLimit(t *testing.T) {
	top := targets.Topology{Nodes: []targets.Node{{ID: "a", Shard: "s1"}, {ID: "b", Shard: "s1"}, {ID: "c", Shard: "s2"}}}
	if got, err := selectNodes(top, targets.Selector{Shard: "s2"}, 1); err != nil || len(got) != 1 {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := selectNodes(top, targets.Selector{}, 1); err == nil || !strings.Contains(err.Error(), "selects 3 nodes (a, b, c)") {
		t.Errorf("a selector that matches everything: %v", err)
	}
	if _, err := selectNodes(top, targets.Selector{Node: "z", Index: 2}, 0); err == nil ||
		!strings.Contains(err.Error(), "{node: z, index: 2} selects no node; there are: a, b, c") {
		t.Errorf("error %v", err)
	}
}

func TestChooseMoves(t *testing.T) {
	top := targets.Topology{}
	for _, s := range []string{"s1", "s2", "s3"} {
		top.Nodes = append(top.Nodes, targets.Node{ID: targets.NodeID(s), Shard: s})
	}
	truth := map[targets.Object]targets.Entry{}
	for i := range 9 {
		o := targets.Object{Kind: targets.KindRoute, ID: fmt.Sprintf("r%d", i)}
		top.Objects = append(top.Objects, o)
		truth[o] = targets.Entry{Object: o, Epoch: targets.Epoch(i), Owner: []string{"s1", "s2", "s3"}[i%3]}
	}
	tests := []struct {
		name   string
		config migrateConfig
		moves  int
		want   string // of an error
	}{
		{"one by default", migrateConfig{}, 1, ""},
		{"named", migrateConfig{Objects: []string{"route/r0", "route/r4"}}, 2, ""},
		{"a share rounds up", migrateConfig{Share: 0.5, From: "s1"}, 2, ""},
		{"all", migrateConfig{Share: 1, To: "s3"}, 6, ""}, // three are there already
		{"no such shard", migrateConfig{To: "s9"}, 0, `to is "s9": there is no such shard; there are s1, s2, s3`},
		{"no such object", migrateConfig{Objects: []string{"route/r99"}}, 0, "route/r99 does not exist"},
		{"there already", migrateConfig{Objects: []string{"route/r2", "route/r1"}, To: "s3"}, 0, "1 of the 2 objects"},
		{"not at the start", migrateConfig{Objects: []string{"route/r2"}, From: "s1"}, 0, "from s1 to any shard"},
		{"too many", migrateConfig{Count: 4, From: "s1"}, 0, "only 3 objects"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.config.choose(top, truth, 5)
			again, _ := tt.config.choose(top, truth, 5)
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("error %v, want %q", err, tt.want)
				}
				return
			}
			if err != nil || len(got) != tt.moves || !slices.Equal(got, again) {
				t.Fatalf("%v, %v; then %v; want %d moves, the same twice", got, err, again, tt.moves)
			}
			for _, mv := range got {
				if mv.From == mv.To || truth[mv.Object].Owner != mv.From || truth[mv.Object].Epoch != mv.Epoch {
					t.Errorf("bad move %+v", mv)
				}
			}
		})
	}
	if _, err := (migrateConfig{}).choose(targets.Topology{Nodes: top.Nodes[:1]}, truth, 0); err == nil {
		t.Error("a migration within one shard is planned")
	}
}
