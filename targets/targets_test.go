package targets

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func TestObjectTextRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Object{
			Kind: Kind(rapid.StringMatching(`[a-z]{1,8}`).Draw(t, "kind")),
			ID:   rapid.StringMatching(`[^\x00]{1,12}`).Draw(t, "id"),
		}
		if back, err := ParseObject(o.String()); err != nil || back != o {
			t.Fatalf("%q reads back as %+v, %v", o, back, err)
		}
	})
	for _, bad := range []string{"", "route", "/r1", "route/"} {
		if o, err := ParseObject(bad); err == nil {
			t.Errorf("%q reads as %+v", bad, o)
		}
	}
}

func TestZeroObjectIsEmptyText(t *testing.T) {
	b, err := json.Marshal(struct{ O Object }{})
	if err != nil || string(b) != `{"O":""}` {
		t.Errorf("wrote %s, %v", b, err)
	}
	back := struct{ O Object }{O: Object{KindRoute, "r1"}}
	if err := json.Unmarshal(b, &back); err != nil || back.O != (Object{}) {
		t.Errorf("read %+v, %v", back, err)
	}
}

func TestSelect(t *testing.T) {
	topology := Topology{Nodes: []Node{
		{ID: "control", Role: RoleControl, Index: 1},
		{ID: "s1-0", Shard: "s1", Role: RolePrimary, Index: 1},
		{ID: "s1-1", Shard: "s1", Role: RoleSecondary, Index: 1},
		{ID: "s1-2", Shard: "s1", Role: RoleSecondary, Index: 2},
		{ID: "s2-0", Shard: "s2", Role: RolePrimary, Index: 1},
	}}
	for _, c := range []struct {
		name string
		on   Selector
		want []NodeID
	}{
		{"nothing selects all", Selector{}, []NodeID{"control", "s1-0", "s1-1", "s1-2", "s2-0"}},
		{"by shard", Selector{Shard: "s1"}, []NodeID{"s1-0", "s1-1", "s1-2"}},
		{"by role", Selector{Role: RolePrimary}, []NodeID{"s1-0", "s2-0"}},
		{"by all", Selector{Shard: "s1", Role: RoleSecondary, Index: 2}, []NodeID{"s1-2"}},
		{"by id", Selector{Node: "s2-0"}, []NodeID{"s2-0"}},
		{"properties that contradict", Selector{Node: "s2-0", Shard: "s1"}, nil},
	} {
		var got []NodeID
		for _, n := range topology.Select(c.on) {
			got = append(got, n.ID)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if got := topology.Shards(); !slices.Equal(got, []string{"s1", "s2"}) {
		t.Errorf("shards %v", got)
	}
	if _, ok := topology.Node("s9-0"); ok {
		t.Error("found a node that is not there")
	}
}

func TestInfoHas(t *testing.T) {
	i := Info{Capabilities: []Capability{CapFetch}}
	if !i.Has(CapFetch) || i.Has(CapWatch) {
		t.Errorf("%+v has fetch %v, watch %v", i, i.Has(CapFetch), i.Has(CapWatch))
	}
}

// Another process that reads a base's text counts from the same instant.
func TestBaseSurvivesItsText(t *testing.T) {
	base := NewBase()
	back, err := ParseBase(base.String())
	if err != nil {
		t.Fatal(err)
	}
	before := base.Now()
	middle := back.Now()
	after := base.Now()
	// The two readings of the clock that a base is made from are some
	// microseconds apart; a stop of the machine between them may be longer.
	if slack := 50 * time.Millisecond; middle < before-slack || middle > after+slack {
		t.Errorf("restored base says %s between %s and %s", middle, before, after)
	}
	if back.String() != base.String() {
		t.Errorf("text %s became %s", base, back)
	}
	if _, err := ParseBase("noon"); err == nil {
		t.Error("noon was read as a base")
	}
}

func TestBaseFollowsTheBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := NewBase()
		time.Sleep(time.Hour)
		if now := base.Now(); now != time.Hour {
			t.Errorf("an hour later it is %s", now)
		}
	})
}

func TestProcessIdentity(t *testing.T) {
	self, err := IdentifyProcess(os.Getpid())
	if err != nil || !self.Alive() || self.Start == 0 || self.Boot == "" {
		t.Fatalf("this process: %+v, alive %v, %v", self, self.Alive(), err)
	}
	other := self
	other.Start++
	if other.Alive() || other.State() != 0 {
		t.Error("a process with another start time is another process")
	}
	other = self
	other.Boot = "another boot"
	if other.Alive() {
		t.Error("a process of another boot is gone")
	}
	if _, err := IdentifyProcess(1 << 30); err == nil {
		t.Error("a pid that cannot be has an identity")
	}
}

func TestAZombieIsNotAlive(t *testing.T) {
	cmd := exec.Command("sleep", "3600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p, err := IdentifyProcess(cmd.Process.Pid)
	if err != nil || !p.Alive() {
		t.Fatalf("%+v, %v", p, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); p.State() != 'Z'; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("state %c, want Z until somebody waits for it", p.State())
		}
	}
	if p.Alive() {
		t.Error("a zombie counts as alive")
	}
	_ = cmd.Wait() // says that it was killed
	if p.State() != 0 {
		t.Errorf("state %c of a process that is gone", p.State())
	}
}
