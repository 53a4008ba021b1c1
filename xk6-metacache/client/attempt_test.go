package client

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/metachaos/metachaos/targets"
)

func refused(code targets.Code, epoch targets.Epoch, owner string) targets.Reply {
	return targets.Reply{Outcome: targets.Refused, Code: code, Epoch: epoch, Owner: owner}
}

func TestAfterOneReply(t *testing.T) {
	on := Recommended()
	off := Policy{MaxAttempts: 12, MaxRedirects: 3}
	held := entry(r1, 4, "s1")
	lost := targets.Reply{Outcome: targets.Unknown, Code: targets.CodeConnectionLost}
	late := targets.Reply{Outcome: targets.Unknown, Code: targets.CodeTimeout}
	for _, k := range []struct {
		name   string
		policy Policy
		verb   targets.Verb
		reply  targets.Reply
		action Action
		out    targets.Outcome
		code   targets.Code
	}{
		{"done", on, targets.VerbRead, targets.Reply{Outcome: targets.Done}, Finish, targets.Done, ""},
		{"stale epoch refreshes", on, targets.VerbRead, refused(targets.CodeStaleEpoch, 5, "s2"), Refresh, "", ""},
		{"without refresh it follows the redirect", off, targets.VerbRead, refused(targets.CodeStaleEpoch, 5, "s2"), Redirect, "", ""},
		{"without refresh and without an owner it retries", off, targets.VerbRead, refused(targets.CodeStaleEpoch, 5, ""), Retry, "", ""},
		{"unknown ownership waits for the node's refresh", on, targets.VerbRead, refused(targets.CodeUnknownOwnership, 0, ""), Retry, "", ""},
		{"node behind waits too", on, targets.VerbWrite, refused(targets.CodeNodeBehind, 3, "s1"), Retry, "", ""},
		{"migrating retries", on, targets.VerbWrite, refused(targets.CodeMigrating, 4, "s1"), Retry, "", ""},
		{"a write to a secondary is a mistake", on, targets.VerbWrite, refused(targets.CodeNotPrimary, 0, ""), Finish, targets.Refused, targets.CodeNotPrimary},
		{"a lost write may have happened", on, targets.VerbWrite, lost, Finish, targets.Unknown, targets.CodeConnectionLost},
		{"a lost read may be repeated", on, targets.VerbRead, lost, Retry, "", ""},
		{"an invalid request stays invalid", on, targets.VerbRead, refused("INVALID", 0, ""), Finish, targets.Refused, "INVALID"},
		{"a code of the target's own with a hint is worth a retry", on, targets.VerbRead,
			targets.Reply{Outcome: targets.Refused, Code: "TRYAGAIN", RetryAfter: 1}, Retry, "", ""},
		{"a node that is down may come back", on, targets.VerbWrite, refused(targets.CodeUnavailable, 0, ""), Retry, "", ""},
		{"without refresh, the same owner at a newer epoch is asked under that", off, targets.VerbRead, refused(targets.CodeStaleEpoch, 5, "s1"), Redirect, "", ""},
		{"a redirect to where it came from leads nowhere", off, targets.VerbRead, refused(targets.CodeNotOwner, 4, "s1"), Retry, "", ""},
		{"a scan refreshes and has nowhere to be redirected to", on, targets.VerbScan, refused(targets.CodeStaleEpoch, 5, "s2"), Refresh, "", ""},
		{"without refresh a scan can only try again", off, targets.VerbScan, refused(targets.CodeStaleEpoch, 5, "s2"), Retry, "", ""},
		{"a late read is late", on, targets.VerbRead, late, Finish, targets.Unknown, targets.CodeTimeout},
	} {
		t.Run(k.name, func(t *testing.T) {
			a := k.policy.Begin(k.verb)
			a.Asking("s1-0", "s1", 4)
			s := a.After(k.reply, held, newRand())
			if s.Action != k.action || s.Outcome != k.out || s.Code != k.code {
				t.Errorf("step %+v, want action %d, %q %q", s, k.action, k.out, k.code)
			}
			if s.Action == Redirect && s.To != entry(r1, 5, k.reply.Owner) {
				t.Errorf("redirect to %+v", s.To)
			}
		})
	}
}

func TestAttemptsAreBounded(t *testing.T) {
	a := Policy{MaxAttempts: 3}.Begin(targets.VerbRead)
	for i := 1; ; i++ {
		a.Asking("s1-0", "s1", 1)
		s := a.After(refused(targets.CodeUnknownOwnership, 0, ""), entry(r1, 1, "s1"), newRand())
		if s.Action == Finish {
			if i != 3 || s.Code != targets.CodeRetriesExhausted || s.Outcome != targets.Refused {
				t.Errorf("ended after %d requests with %+v", i, s)
			}
			return
		}
	}
}

// A says B owns it and B says A does: the redirect limit ends the chase, and
// it is recognised as a loop.
func TestSplitViewEndsAtTheRedirectLimit(t *testing.T) {
	a := Policy{MaxRedirects: 3}.Begin(targets.VerbRead)
	at, other := entry(r1, 7, "s1"), "s2"
	for {
		a.Asking(targets.NodeID(at.Owner+"-0"), at.Owner, at.Epoch)
		s := a.After(refused(targets.CodeNotOwner, 7, other), at, newRand())
		if s.Action == Finish {
			if s.Code != targets.CodeRedirectLimit {
				t.Errorf("ended with %+v", s)
			}
			break
		}
		at, other = s.To, at.Owner
	}
	if a.Requests != 4 || a.Redirects != 3 || !a.Loop {
		t.Errorf("%d requests, %d redirects, loop %v; want 4, 3, true", a.Requests, a.Redirects, a.Loop)
	}
}

func TestARevisitUnderANewerEpochIsNoLoop(t *testing.T) {
	a := Policy{MaxRedirects: -1}.Begin(targets.VerbRead)
	a.Asking("s1-0", "s1", 1)
	a.Asking("s2-0", "s2", 2)
	a.Asking("s1-0", "s1", 3)
	if a.Loop {
		t.Error("the epoch grew, so the chase made progress")
	}
	a.Asking("s2-0", "s2", 2)
	if !a.Loop {
		t.Error("back at s2-0 under the same epoch as before")
	}
}

func TestARevisitOfTheSameOwnerIsNoLoop(t *testing.T) {
	a := Recommended().Begin(targets.VerbRead)
	for range 3 { // a node that refreshes is asked again
		a.Asking("s1-0", "s1", 1)
		a.Asking("s1-1", "s1", 1)
	}
	if a.Loop || a.Redirects != 0 {
		t.Errorf("loop %v, %d redirects; want neither", a.Loop, a.Redirects)
	}
}

// No redirects at all still allow a scan to refresh: it goes nowhere else.
func TestTheRedirectLimitIsNotForScans(t *testing.T) {
	p := Recommended()
	p.MaxRedirects = 0
	for verb, want := range map[targets.Verb]Action{targets.VerbScan: Refresh, targets.VerbRead: Finish} {
		a := p.Begin(verb)
		a.Asking("s1-0", "s1", 4)
		if s := a.After(refused(targets.CodeStaleEpoch, 5, "s2"), entry(r1, 4, "s1"), newRand()); s.Action != want {
			t.Errorf("%s: %+v, want action %d", verb, s, want)
		}
	}
}

// The first mismatch is news that is worth a pull at once. When the pull did
// not help, the next must wait, or a split view makes a storm of pulls.
func TestFurtherRefreshesBackOff(t *testing.T) {
	p := Policy{RefreshOnMismatch: true, BackoffBase: time.Second, BackoffMax: time.Second}
	a := p.Begin(targets.VerbRead)
	for i := range 5 {
		a.Asking("s1-0", "s1", 4)
		s := a.After(refused(targets.CodeStaleEpoch, 5, "s1"), entry(r1, 4, "s1"), newRand())
		if s.Action != Refresh || (s.Wait > 0) != (i > 0) {
			t.Errorf("refresh %d: %+v", i+1, s)
		}
	}
}

func TestTheNodesHintIsTheLeastWait(t *testing.T) {
	a := Policy{}.Begin(targets.VerbRead)
	a.Asking("s1-0", "s1", 4)
	r := refused(targets.CodeUnknownOwnership, 0, "")
	r.RetryAfter = 20 * time.Millisecond
	if s := a.After(r, entry(r1, 4, "s1"), newRand()); s.Wait != r.RetryAfter {
		t.Errorf("wait %s, want %s", s.Wait, r.RetryAfter)
	}
}

func TestBackoffStaysWithinItsCeiling(t *testing.T) {
	p := Policy{BackoffBase: 10 * time.Millisecond, BackoffMax: 100 * time.Millisecond}
	rng := newRand()
	for n, ceiling := range map[int]time.Duration{1: 10, 2: 20, 4: 80, 5: 100, 60: 100} {
		ceiling *= time.Millisecond
		longest := time.Duration(0)
		for range 2000 {
			w := p.backoff(n, rng)
			if w <= 0 || w > ceiling {
				t.Fatalf("attempt %d: wait %s outside (0, %s]", n, w, ceiling)
			}
			longest = max(longest, w)
		}
		if longest < ceiling*9/10 {
			t.Errorf("attempt %d: longest of 2000 waits %s, want close to %s", n, longest, ceiling)
		}
	}
}

func TestValidateNamesTheField(t *testing.T) {
	if err := Recommended().Validate(); err != nil {
		t.Errorf("recommended: %v", err)
	}
	for name, p := range map[string]Policy{
		"ttl": {TTL: -1}, "jitter": {Jitter: 1.1}, "jitter is NaN": {Jitter: math.NaN()}, "periodicPull": {PeriodicPull: -1},
		"backoff": {BackoffBase: 2, BackoffMax: 1}, "maxAttempts": {MaxAttempts: -1},
	} {
		if err := p.Validate(); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
