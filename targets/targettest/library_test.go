package targettest_test

import (
	"testing"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/targettest"
)

func TestLibraryKeepsTheContract(t *testing.T) {
	targettest.Run(t, func(*testing.T) targets.Target { return targettest.NewLibrary() })
}

func TestLibrarySessionsFollowThreeRedirects(t *testing.T) {
	l := targettest.NewLibrary()
	key := "item-0"
	op := targets.Op{Verb: targets.VerbRead, Key: key}
	home := l.Do(t.Context(), op).Shard
	others := map[string][]string{"s1": {"s2", "s3"}, "s2": {"s1", "s3"}, "s3": {"s1", "s2"}}[home]
	stale, err := l.Open(t.Context(), "stale")
	if err != nil {
		t.Fatal(err)
	}
	l.Pin(home, key, others[0])
	l.Pin(others[0], key, others[1])
	l.Pin(others[1], key, others[0]) // a loop between two that do not own it
	if r := stale.Do(t.Context(), op); r.Code != targets.CodeRedirectLimit || r.Hops != 4 {
		t.Errorf("in a loop: code %q after %d hops; want %s after 4", r.Code, r.Hops, targets.CodeRedirectLimit)
	}
	for _, shard := range append(others, home) {
		l.Pin(shard, key, "")
	}
	if r := stale.Do(t.Context(), op); r.Outcome != targets.Done || r.Hops != 2 {
		t.Errorf("after the loop: outcome %q after %d hops; want done after 2", r.Outcome, r.Hops)
	}
	if r := stale.Do(t.Context(), op); r.Hops != 1 {
		t.Errorf("with a corrected map: %d hops; want 1", r.Hops)
	}
}
