package node

import "github.com/metachaos/metachaos/targets"

// check is the version check of a data node: what a node of the shard that
// holds this entry (or none) says to a request that carries an epoch. Empty
// means that it serves.
func check(held targets.Entry, known bool, sent targets.Epoch, shard string) targets.Code {
	switch {
	case !known:
		return targets.CodeUnknownOwnership
	case held.Epoch > sent:
		return targets.CodeStaleEpoch
	case held.Epoch < sent:
		return targets.CodeNodeBehind
	case held.Owner != shard:
		return targets.CodeNotOwner
	}
	return ""
}

// mustRefresh tells which refusals come from the node's own ignorance.
func mustRefresh(c targets.Code) bool {
	return c == targets.CodeUnknownOwnership || c == targets.CodeNodeBehind
}
