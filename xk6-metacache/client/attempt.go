package client

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/metachaos/metachaos/targets"
)

// Action is what an operation does after a reply.
type Action int

// The actions, each after the wait of the step. After Finish the operation is
// over. Retry asks the same owner again. Refresh pulls the object first.
// Redirect asks the owner that the refusal named, under its epoch.
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
	Loop bool

	refreshes int
	last      visit
	past      []visit // before the last; most operations have none
}

// visit is one request: who was asked, of which owner, and under which epoch.
type visit struct {
	node  targets.NodeID
	owner string
	epoch targets.Epoch
}

// Begin starts an operation.
func (p Policy) Begin(verb targets.Verb) Attempt { return Attempt{policy: p, verb: verb} }

// Asking records that a request goes to a node of the owner shard, under the
// epoch at which the client takes that shard for the owner, whether or not the
// request carries it.
func (a *Attempt) Asking(node targets.NodeID, owner string, epoch targets.Epoch) {
	if a.Requests > 0 {
		a.past = append(a.past, a.last)
		if owner != a.last.owner {
			a.Redirects++
			a.Loop = a.Loop || slices.ContainsFunc(a.past, func(v visit) bool { return v.node == node && epoch <= v.epoch })
		}
	}
	a.Requests++
	a.last = visit{node, owner, epoch}
}

// After decides what follows a reply to the request that Asking announced.
// held is the entry under which it was sent.
func (a *Attempt) After(r targets.Reply, held targets.Entry, rng *rand.Rand) Step {
	if a.over(r) {
		return Step{Action: Finish, Outcome: r.Outcome, Code: r.Code}
	}
	if a.policy.MaxAttempts > 0 && a.Requests >= a.policy.MaxAttempts {
		return Step{Action: Finish, Outcome: r.Outcome, Code: targets.CodeRetriesExhausted}
	}
	wait := max(r.RetryAfter, a.policy.backoff(a.Requests, rng))
	if mismatch(r.Code) {
		return a.elsewhere(r, held, wait)
	}
	return Step{Action: Retry, Wait: wait}
}

// over tells the replies that no further request can better.
func (a *Attempt) over(r targets.Reply) bool {
	switch r.Outcome {
	case targets.Done:
		return true
	case targets.Unknown:
		// A write that may have happened must not be sent again: it would
		// happen twice. A read may, unless its deadline is what ended it.
		return a.verb == targets.VerbWrite || r.Code == targets.CodeTimeout
	}
	switch r.Code {
	case targets.CodeUnknownOwnership, targets.CodeNodeBehind, targets.CodeMigrating, targets.CodeUnavailable, targets.CodeInternal:
		return false
	}
	// Of a code that the kernel does not know, such as that of an invalid
	// request, only the node can say that waiting helps.
	return !mismatch(r.Code) && r.RetryAfter <= 0
}

// mismatch tells the refusals which say that the client's map is wrong.
func mismatch(c targets.Code) bool {
	return c == targets.CodeStaleEpoch || c == targets.CodeNotOwner
}

// elsewhere handles a refusal that says somebody else is, or may be, the
// owner. A scan asks all shards, so that it has nowhere else to go.
func (a *Attempt) elsewhere(r targets.Reply, held targets.Entry, wait time.Duration) Step {
	one := a.verb != targets.VerbScan
	moved := one && r.Owner != "" && r.Owner != a.last.owner
	if moved && a.policy.MaxRedirects >= 0 && a.Redirects >= a.policy.MaxRedirects {
		return Step{Action: Finish, Outcome: targets.Refused, Code: targets.CodeRedirectLimit}
	}
	switch {
	case a.policy.RefreshOnMismatch:
		a.refreshes++
		if a.refreshes == 1 {
			wait = r.RetryAfter // the first pull is news; a further one must not become a storm
		}
		return Step{Action: Refresh, Wait: wait}
	case moved, one && r.Owner != "" && r.Epoch > held.Epoch:
		return Step{Action: Redirect, To: targets.Entry{Object: held.Object, Epoch: max(r.Epoch, held.Epoch), Owner: r.Owner}}
	}
	return Step{Action: Retry, Wait: wait}
}
