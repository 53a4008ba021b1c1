package client

import (
	"math/rand/v2"
	"time"

	"github.com/metachaos/metachaos/targets"
)

// Action is what an operation does after a reply.
type Action int

// The actions. After Finish the operation is over. Retry asks the same owner
// again, after the wait. Refresh pulls the object first. Redirect asks the
// owner that the refusal named, under its epoch.
const (
	Finish Action = iota
	Retry
	Refresh
	Redirect
)

// Step is the decision after one reply.
type Step struct {
	Action Action
	Wait   time.Duration
	To     targets.Entry // with Redirect
	// With Finish: how the operation ended.
	Outcome targets.Outcome
	Code    targets.Code
}

// Attempt is one operation under way: it counts its requests and redirects,
// and recognises loops.
type Attempt struct {
	policy    Policy
	verb      targets.Verb
	Requests  int
	Redirects int
	// Loop is set when a node was asked a second time about the same object
	// with no newer epoch than before.
	Loop    bool
	visited map[targets.NodeID]targets.Epoch
	owner   string
}

// Begin starts an operation.
func (p Policy) Begin(verb targets.Verb) *Attempt { return &Attempt{policy: p, verb: verb} }

// Asking records that a request goes to a node of the owner shard under an
// epoch.
func (a *Attempt) Asking(node targets.NodeID, owner string, epoch targets.Epoch) {
	a.Requests++
	if a.owner != "" && owner != a.owner {
		a.Redirects++
		if before, again := a.visited[node]; again && epoch <= before {
			a.Loop = true
		}
	}
	a.owner = owner
	if a.visited == nil {
		a.visited = make(map[targets.NodeID]targets.Epoch, 1)
	}
	a.visited[node] = max(epoch, a.visited[node])
}

// After decides what follows a reply to the request that Asking announced.
// held is the entry under which it was sent.
func (a *Attempt) After(r targets.Reply, held targets.Entry, rng *rand.Rand) Step {
	switch r.Outcome {
	case targets.Done:
		return Step{Action: Finish, Outcome: targets.Done}
	case targets.Unknown:
		// A write that may have happened must not be sent again: it would
		// happen twice. A read may, unless its deadline is what ended it.
		if a.verb == targets.VerbWrite || r.Code == targets.CodeTimeout {
			return Step{Action: Finish, Outcome: targets.Unknown, Code: r.Code}
		}
	}
	if a.policy.MaxAttempts > 0 && a.Requests >= a.policy.MaxAttempts {
		return Step{Action: Finish, Outcome: r.Outcome, Code: targets.CodeRetriesExhausted}
	}
	wait := max(r.RetryAfter, a.policy.backoff(a.Requests, rng))
	switch r.Code {
	case targets.CodeStaleEpoch, targets.CodeNotOwner:
		return a.elsewhere(r, held, wait)
	case targets.CodeNotPrimary:
		return Step{Action: Finish, Outcome: targets.Refused, Code: r.Code}
	}
	return Step{Action: Retry, Wait: wait}
}

// elsewhere handles a refusal that says somebody else is, or may be, the owner.
func (a *Attempt) elsewhere(r targets.Reply, held targets.Entry, wait time.Duration) Step {
	moved := r.Owner != "" && r.Owner != a.owner
	if moved && a.policy.MaxRedirects >= 0 && a.Redirects >= a.policy.MaxRedirects {
		return Step{Action: Finish, Outcome: targets.Refused, Code: targets.CodeRedirectLimit}
	}
	switch {
	case a.policy.RefreshOnMismatch:
		return Step{Action: Refresh}
	case r.Owner != "":
		return Step{Action: Redirect, To: targets.Entry{Object: held.Object, Epoch: max(r.Epoch, held.Epoch), Owner: r.Owner}}
	default:
		return Step{Action: Retry, Wait: wait}
	}
}
