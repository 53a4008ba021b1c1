package node

import (
	"fmt"

	"github.com/metachaos/metachaos/targets"
)

// PrimaryID names the primary of a shard.
func PrimaryID(shard string) targets.NodeID { return MemberID(shard, 0) }

// MemberID names the i-th node of a shard; the 0th is its primary.
func MemberID(shard string, i int) targets.NodeID {
	return targets.NodeID(fmt.Sprintf("%s-%d", shard, i))
}
