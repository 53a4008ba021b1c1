package analysis

import (
	"cmp"
	"slices"
	"time"

	"github.com/metachaos/metachaos/targets"
)

// history is what the control plane committed, per object: the only judge of
// staleness. Its size grows with the commits, not with the load.
type history map[targets.Object][]commit

// commit is an entry that became the truth.
type commit struct {
	at    time.Duration
	epoch targets.Epoch
	owner string
}

func (h history) add(t *targets.Truth) {
	if t.Kind == targets.TruthCommit {
		h[t.Object] = append(h[t.Object], commit{t.At, t.Epoch, t.Owner})
	}
}

// sort puts the commits of each object in order of time; commits of one
// instant in order of their epochs.
func (h history) sort() {
	for _, commits := range h {
		slices.SortFunc(commits, func(a, b commit) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.epoch, b.epoch), cmp.Compare(a.owner, b.owner))
		})
	}
}

// judgement is what the history says of one operation.
type judgement struct {
	judged bool
	stale  bool
	lag    uint64        // epochs missed, of a stale operation
	age    time.Duration // from the first change that was missed to its start
}

// judge says whether whoever served the operation was the owner of record at
// some instant of [Start, End]. While the operation ran, every owner of that
// time may rightly have served it.
//
//	commits   ──A,1────────B,2──────────C,3──►
//	served by B:  [··stale··] [··fine··] [··stale··]
//	                              [··fine··]
func (h history) judge(e *targets.Event) judgement {
	commits := h[e.Object]
	// The last commit at or before the start is the truth when it starts.
	next, _ := slices.BinarySearchFunc(commits, e.Start, func(c commit, start time.Duration) int {
		if c.at <= start {
			return -1
		}
		return 1
	})
	current := next - 1
	for i := max(current, 0); i < len(commits) && commits[i].at <= e.End; i++ {
		if servedBy(e, commits[i].owner) {
			return judgement{judged: true}
		}
	}
	if current < 0 {
		return judgement{} // nobody knows who owned the object when it started
	}
	held := current - 1
	for held >= 0 && !servedBy(e, commits[held].owner) {
		held--
	}
	return judgement{
		judged: true,
		stale:  true,
		lag:    lag(e, commits[:current+1], held),
		age:    e.Start - commits[held+1].at,
	}
}

// lag counts the epochs that the operation was behind: by the epoch that it
// was served under, or, when the node checked none, by the commits since the
// server's last ownership.
func lag(e *targets.Event, past []commit, held int) uint64 {
	now := past[len(past)-1].epoch
	switch {
	case e.Served == 0:
		return uint64(len(past) - 1 - held)
	case e.Served < now:
		return uint64(now - e.Served)
	}
	return 0
}

// servedBy tells whether the owner of an entry, which is a shard or, for
// leaderships, may be a node, served the operation.
func servedBy(e *targets.Event, owner string) bool {
	return owner == e.Shard || owner == string(e.Node)
}

// hasOwner tells kinds whose entries name who may answer from those whose
// entries name a principal or a value.
func hasOwner(k targets.Kind) bool {
	return k == targets.KindRoute || k == targets.KindLeader
}
