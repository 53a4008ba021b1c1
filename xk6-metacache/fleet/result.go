package fleet

import (
	"context"
	"strconv"
	"strings"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/xk6-metacache/client"
)

// Result is what became of one operation.
type Result struct {
	Event targets.Event
	// Held is the epoch that the client held when it began; EpochLag is how
	// many versions that was behind the epoch which served it, 0 where either
	// is not known.
	Held     targets.Epoch
	EpochLag uint64
	// Owner is the shard that the last node takes for the owner, if it said.
	Owner string
	// Redirects is how often the operation was sent on to another shard. Loop
	// is set when it came back to a node under an epoch that is no newer.
	Redirects int
	Loop      bool
	Refusals  []targets.Code // in order
	Documents []targets.Document

	first targets.Hop // kept apart: most operations have no second
}

// hop notes a request to a node of a shard, and the answer.
func (r *Result) hop(shard string, op targets.Op, reply targets.Reply) {
	e := &r.Event
	e.HopCount++
	e.Node, e.Shard, e.Sent = op.Node, shard, op.Epoch
	if reply.Outcome == targets.Refused {
		r.Refusals = append(r.Refusals, reply.Code)
	}
	hop := targets.Hop{Node: op.Node, Epoch: op.Epoch, Served: reply.Epoch, Code: reply.Code, Owner: reply.Owner}
	switch e.HopCount {
	case 1:
		r.first = hop
	case 2:
		e.Hops = append(e.Hops, r.first, hop)
	default:
		e.Hops = append(e.Hops, hop)
	}
}

func (r *Result) finish(reply targets.Reply, step client.Step) {
	e := &r.Event
	e.Outcome, e.Code, e.Served = step.Outcome, step.Code, reply.Epoch
	if reply.Node != "" {
		e.Node = reply.Node
	}
	if reply.Shard != "" {
		e.Shard = reply.Shard
	}
	e.Documents = len(reply.Documents)
	if len(reply.Documents) == 1 {
		e.Version = reply.Documents[0].Version
	}
	r.Owner, r.Documents = reply.Owner, reply.Documents
	if e.Outcome == targets.Done && r.Held > 0 && reply.Epoch > r.Held {
		r.EpochLag = uint64(reply.Epoch - r.Held)
	}
}

// end closes an operation that ran out of time between two requests: nothing
// of it is under way, so it has not happened.
func (r *Result) end(ctx context.Context, outcome targets.Outcome, code targets.Code) {
	r.Event.Outcome, r.Event.Code = outcome, code
	if ctx.Err() != nil {
		r.Event.Code = targets.CodeTimeout
	}
}

// count finds the ids that came twice and the loaded ones that did not come.
func (r *Result) count(loaded int) {
	seen := make(map[string]struct{}, len(r.Documents))
	e := &r.Event
	e.Documents, e.Missing = len(r.Documents), loaded
	for _, d := range r.Documents {
		if _, twice := seen[d.ID]; twice {
			e.Duplicates++
			continue
		}
		seen[d.ID] = struct{}{}
		if isLoaded(d.ID, loaded) {
			e.Missing--
		}
	}
}

// isLoaded reports whether id is one of item-0 … item-(n-1).
func isLoaded(id string, n int) bool {
	text, ok := strings.CutPrefix(id, "item-")
	if !ok {
		return false
	}
	i, err := strconv.Atoi(text)
	return err == nil && i >= 0 && i < n && strconv.Itoa(i) == text
}
