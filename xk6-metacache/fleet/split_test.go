package fleet_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/xk6-metacache/fleet"
)

// split is a cluster whose two shards each take the other for the owner of
// everything, while the control plane stands by the first.
type split struct {
	pulls atomic.Int64
	epoch func() targets.Epoch // of each refusal
}

var (
	_ targets.Target  = (*split)(nil)
	_ targets.Placer  = (*split)(nil)
	_ targets.Fetcher = (*split)(nil)
)

var theRange = targets.Object{Kind: targets.KindRoute, ID: "r0"}

func (*split) Info() targets.Info { return targets.Info{Kind: "split"} }

func (*split) Topology(context.Context) (targets.Topology, error) {
	return targets.Topology{Objects: []targets.Object{theRange}, Nodes: []targets.Node{
		{ID: "s1-0", Shard: "s1", Role: targets.RolePrimary, Index: 1}, {ID: "s2-0", Shard: "s2", Role: targets.RolePrimary, Index: 1}}}, nil
}

func (s *split) Do(_ context.Context, op targets.Op) targets.Reply {
	other := map[targets.NodeID]string{"s1-0": "s2", "s2-0": "s1"}[op.Node]
	return targets.Reply{Outcome: targets.Refused, Code: targets.CodeNotOwner, Epoch: s.epoch(), Owner: other, Node: op.Node,
		Shard: strings.TrimSuffix(string(op.Node), "-0")}
}

func (*split) Close(context.Context) error { return nil }

func (*split) Place(string) targets.Object { return theRange }

func (s *split) Fetch(context.Context, targets.Fetch) ([]targets.Entry, error) {
	s.pulls.Add(1)
	return []targets.Entry{{Object: theRange, Epoch: 7, Owner: "s1"}}, nil
}

func TestSplitView(t *testing.T) {
	same := func() targets.Epoch { return 7 }
	grows := func() func() targets.Epoch {
		at := targets.Epoch(7)
		return func() targets.Epoch { at++; return at }
	}
	for name, c := range map[string]struct {
		epoch               func() targets.Epoch
		change              func(*fleet.Config)
		code                targets.Code
		requests, redirects int
		loop                bool
		pulls               int64
	}{
		"redirects end at their limit": {same, func(c *fleet.Config) { c.Policy.RefreshOnMismatch = false },
			targets.CodeRedirectLimit, 4, 3, true, 1},
		"also when no epochs are sent": {same, func(c *fleet.Config) { c.Policy.RefreshOnMismatch, c.Policy.Epochs = false, false },
			targets.CodeRedirectLimit, 4, 3, true, 1},
		"while epochs grow it is no loop": {grows(), func(c *fleet.Config) { c.Policy.RefreshOnMismatch = false },
			targets.CodeRedirectLimit, 4, 3, false, 1},
		"nor is it when no epochs are sent": {grows(), func(c *fleet.Config) { c.Policy.RefreshOnMismatch, c.Policy.Epochs = false, false },
			targets.CodeRedirectLimit, 4, 3, false, 1},
		"no redirects at all": {same, func(c *fleet.Config) { c.Policy.MaxRedirects = 0 },
			targets.CodeRedirectLimit, 1, 0, false, 1},
		"those who ask the control plane stay with it": {same, func(*fleet.Config) {},
			targets.CodeRetriesExhausted, 12, 0, false, 12},
		// Every further pull waits, or this would never end.
		"and back off when nothing else stops them": {same, func(c *fleet.Config) { c.Policy.MaxAttempts = 0 },
			targets.CodeTimeout, 0, 0, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &split{epoch: c.epoch}
				config := fleet.Defaults()
				config.Clients, config.Policy.Push = 1, false
				config.Timeout, config.Policy.TTL = 10*time.Second, time.Hour
				c.change(&config)
				f, err := fleet.New(t.Context(), s, targets.NewBase(), &recorder{}, config)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				r := f.Read(t.Context(), 0, "key")
				if e := r.Event; e.Outcome != targets.Refused || e.Code != c.code || r.Redirects != c.redirects || r.Loop != c.loop ||
					c.requests > 0 && (e.HopCount != c.requests || s.pulls.Load() != c.pulls) {
					t.Errorf("%s %s after %d requests, %d redirects, loop %v, %d pulls; want %s after %d, %d, %v, %d",
						e.Outcome, e.Code, e.HopCount, r.Redirects, r.Loop, s.pulls.Load(), c.code, c.requests, c.redirects, c.loop, c.pulls)
				}
				// The mean of the waits is 125 ms once they have grown.
				if n := s.pulls.Load(); c.requests == 0 && (n < 40 || n > 200) {
					t.Errorf("%d pulls in 10 s", n)
				}
			})
		})
	}
}

// The target shows no replicas, pushes or sessions: what cannot work is
// refused before anything starts.
func TestNewRefuses(t *testing.T) {
	fine := func() fleet.Config {
		c := fleet.Defaults()
		c.Policy.Push = false
		return c
	}
	for want, change := range map[string]func(*fleet.Config) targets.Target{
		"sends no pushes; switch push off":                  func(c *fleet.Config) targets.Target { c.Policy.Push = true; return &split{} },
		"neither routes by itself nor hands out metadata":   func(*fleet.Config) targets.Target { return bare{} },
		"start fleet: no topology":                          func(*fleet.Config) targets.Target { return broken{} },
		"start fleet: warm caches: no entries":              func(c *fleet.Config) targets.Target { c.Warm = true; return broken{split: &split{}} },
		"clients is 0, want 1 to 10000000":                  func(c *fleet.Config) targets.Target { c.Clients = 0; return &split{} },
		`refresh is "often", want "demand" or "background"`: func(c *fleet.Config) targets.Target { c.Refresh = "often"; return &split{} },
		`readPreference is "any"`:                           func(c *fleet.Config) targets.Target { c.Preference = "any"; return &split{} },
		`readConcern is "any"`:                              func(c *fleet.Config) targets.Target { c.Concern = "any"; return &split{} },
		"timeout is 0s, want more than 0":                   func(c *fleet.Config) targets.Target { c.Timeout = 0; return &split{} },
		"pullTimeout is 0s, want more than 0":               func(c *fleet.Config) targets.Target { c.PullTimeout = 0; return &split{} },
		"streams is 0, want 1 or more":                      func(c *fleet.Config) targets.Target { c.Streams = 0; return &split{} },
		"configure fleet: jitter is 2, want 0 to 1":         func(c *fleet.Config) targets.Target { c.Policy.Jitter = 2; return &split{} },
		"open session of client c-0: no sessions to be had": func(*fleet.Config) targets.Target { return sessionless{} },
		"configure fleet: maxAttempts is negative: -1":      func(c *fleet.Config) targets.Target { c.Policy.MaxAttempts = -1; return &split{} },
		"configure fleet: periodicPull is negative: -1ns":   func(c *fleet.Config) targets.Target { c.Policy.PeriodicPull = -1; return &split{} },
		"configure fleet: backoff is 1s to 0s, want 0 or more": func(c *fleet.Config) targets.Target {
			c.Policy.BackoffBase, c.Policy.BackoffMax = time.Second, 0
			return &split{}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			config := fine()
			f, err := fleet.New(t.Context(), change(&config), targets.NewBase(), &recorder{}, config)
			if err == nil || f != nil || !strings.Contains(err.Error(), want) {
				t.Errorf("fleet %v, error %v; want %q", f, err, want)
			}
		})
	}
}
