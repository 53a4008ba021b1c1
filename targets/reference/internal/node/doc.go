// Package node is the reference cluster without a transport: the control
// plane and the data nodes, which reach each other through the small
// interfaces of peers.go. In memory these are the nodes themselves; between
// processes they are gRPC clients.
package node

import (
	"context"
	"errors"
	"time"

	"github.com/metachaos/metachaos/targets"
)

// Refresh is the way in which a secondary gets its ownership list.
type Refresh string

// The ways of refreshing.
const (
	ViaPrimary Refresh = "via-primary" // its primary refreshes and flushes, the write replicates
	Direct     Refresh = "direct"      // it asks the control plane itself
	FromDisk   Refresh = "from-disk"   // as ViaPrimary, but a restarted node first rebuilds from its local copy
)

// CodeInvalid refuses an operation that no caller should send. It is the one
// code that the reference cluster adds.
const CodeInvalid targets.Code = "INVALID"

// ErrStopping is what a node answers that is on its way out.
var ErrStopping = errors.New("the node is stopping")

// Settings are what all nodes of a cluster agree on. All are set: defaults
// are the caller's business.
type Settings struct {
	Shards       []string
	Replicas     int // nodes per shard, the primary included
	Objects      []targets.Object
	Place        func(key string) targets.Object
	Documents    int
	Refresh      Refresh
	RefreshLimit time.Duration
	Filter       bool
	Heartbeat    time.Duration
	PullDelay    time.Duration
}

// home is the shard that owns the i-th object at first.
func (s Settings) home(i int) string { return s.Shards[i%len(s.Shards)] }

// Identity says which node of the cluster one is.
type Identity struct {
	ID    targets.NodeID
	Shard string
	Role  targets.Role
}

// ControlPlane is what a data node asks of the control plane.
type ControlPlane interface {
	Fetch(ctx context.Context, f targets.Fetch) ([]targets.Entry, error)
}

// Primary is what a secondary asks of its primary.
type Primary interface {
	// Flush refreshes the object from the control plane, writes the answer to
	// the local metadata cache, and returns the log position of that write.
	Flush(ctx context.Context, o targets.Object) (position int64, err error)
	// Tail delivers the log from a position on, until ctx ends or the stream
	// breaks. When deliver returns nil the follower has what it was given.
	Tail(ctx context.Context, follower targets.NodeID, from int64, deliver func(frames []byte) error) error
}

// Mover is what a migration asks of the primary of a shard.
type Mover interface {
	// Hold begins the critical section of the object: its writes are refused
	// until Adopt, Release, or the end of the lease. With renew it extends a
	// section that must still be held under the token.
	Hold(ctx context.Context, o targets.Object, token string, lease time.Duration, renew bool) error
	// Release ends the section without a change of owner.
	Release(ctx context.Context, o targets.Object, token string) error
	// Export returns the documents of the object.
	Export(ctx context.Context, o targets.Object) ([]targets.Document, error)
	// Import makes these the documents of the object, and returns once they
	// have replicated.
	Import(ctx context.Context, o targets.Object, documents []targets.Document) error
	// Adopt puts an entry into the ownership list and ends the section.
	Adopt(ctx context.Context, e targets.Entry) error
	// Purge deletes the documents of an object that the shard does not own.
	Purge(ctx context.Context, o targets.Object) error
}

// RuleKeeper is the part of a node that faults are armed on; the methods are
// those of [targets.Cooperator].
type RuleKeeper interface {
	SetRule(ctx context.Context, r targets.Rule) error
	RuleState(ctx context.Context, id string) (targets.RuleState, error)
	ClearRule(ctx context.Context, id string) error
}
