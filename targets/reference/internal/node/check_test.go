package node

import (
	"testing"

	"github.com/metachaos/metachaos/targets"
)

func TestCheck(t *testing.T) {
	mine := func(e targets.Epoch) targets.Entry { return targets.Entry{Epoch: e, Owner: "s1"} }
	for _, row := range []struct {
		name  string
		held  targets.Entry
		known bool
		sent  targets.Epoch
		want  targets.Code
	}{
		{"the same epoch", mine(5), true, 5, ""},
		{"the node holds a newer one", mine(5), true, 4, targets.CodeStaleEpoch},
		{"the node holds an older one", mine(5), true, 6, targets.CodeNodeBehind},
		{"the node holds nothing", targets.Entry{}, false, 5, targets.CodeUnknownOwnership},
		{"the same epoch, another owner", targets.Entry{Epoch: 5, Owner: "s2"}, true, 5, targets.CodeNotOwner},
		// Whose it was at an older epoch does not matter.
		{"newer and another owner", targets.Entry{Epoch: 5, Owner: "s2"}, true, 4, targets.CodeStaleEpoch},
	} {
		if got := check(row.held, row.known, row.sent, "s1"); got != row.want {
			t.Errorf("%s: %q; want %q", row.name, got, row.want)
		}
	}
}
