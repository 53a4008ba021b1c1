package reference_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference"
)

// TestVersionCheck is the version-check table on a live secondary and primary,
// with what the node does about it: it refreshes where it is behind.
func TestVersionCheck(t *testing.T) {
	for _, refresh := range []string{reference.ViaPrimary, reference.Direct, reference.FromDisk} {
		for _, id := range []targets.NodeID{"s1-0", "s1-1"} {
			t.Run(refresh+"/"+string(id), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					versionCheck(t, startMemory(t, small(func(c *reference.Config) { c.Refresh = refresh })), id)
				})
			})
		}
	}
}

func versionCheck(t *testing.T, m *reference.Memory, id targets.NodeID) {
	t.Helper()
	key := keysOf(small(nil))[0] // of s1
	o := m.Place(key)
	want := func(what string, e targets.Epoch, c targets.Concern, code targets.Code, held targets.Epoch) {
		t.Helper()
		r := m.Do(t.Context(), targets.Op{Verb: targets.VerbRead, Node: id, Key: key, Epoch: e, Concern: c})
		if r.Code != code || r.Epoch != held {
			t.Errorf("%s: code %q at epoch %d (%s); want %q at %d", what, r.Code, r.Epoch, r.Detail, code, held)
		}
	}
	soon := func() { time.Sleep(50 * time.Millisecond) } // virtual; a refresh takes no time in memory
	want("nothing held, available", 1, targets.ConcernAvailable, "", 0)
	want("nothing held", 1, "", targets.CodeUnknownOwnership, 0)
	soon()
	want("the same epoch", 1, "", "", 1)
	want("no epoch", 0, "", "", 0)
	// s1 → s2 → s1: the truth is at epoch 3, and who was not told is behind.
	for _, to := range []string{"s2", "s1"} {
		if _, err := m.Migrate(t.Context(), o, to, targets.StageCleaned); err != nil {
			t.Fatal(err)
		}
		soon() // the donor's own refresh must not pick up the next epoch
	}
	r := m.Do(t.Context(), targets.Op{Verb: targets.VerbRead, Node: id, Key: key, Epoch: 3})
	if r.Code != targets.CodeNodeBehind || r.RetryAfter <= 0 {
		t.Errorf("an older epoch held: %+v; want NODE_BEHIND with a hint", r)
	}
	soon()
	want("after its refresh", 3, "", "", 3)
	want("a newer epoch held", 2, "", targets.CodeStaleEpoch, 3)
	want("a newer epoch held, available", 2, targets.ConcernAvailable, "", 0)
}
