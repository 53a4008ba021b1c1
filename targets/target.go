package targets

import (
	"context"
	"time"
)

// Capability is something that a target can do beyond performing operations.
// A plan that needs a capability which the target lacks is refused before
// anything starts.
type Capability string

// The capabilities. Each but the first two names the optional interface that
// a target implements.
const (
	CapEpochs      Capability = "epochs"       // requests carry epochs and nodes check them
	CapReplicas    Capability = "replicas"     // reads can be sent to secondaries
	CapFetch       Capability = "fetch"        // Fetcher
	CapWatch       Capability = "watch"        // Watcher
	CapTruth       Capability = "truth"        // TruthLog
	CapProcesses   Capability = "processes"    // Processes
	CapRestart     Capability = "restart"      // Restarter
	CapMigrate     Capability = "migrate"      // Migrator
	CapRules       Capability = "rules"        // Cooperator
	CapProxy       Capability = "proxy"        // Proxied
	CapSelfRouting Capability = "self-routing" // SelfRouting
)

// Info describes a target.
type Info struct {
	Kind         string // the kind that a plan names, for example "reference"
	Version      string
	Capabilities []Capability
}

// Has reports whether the target can do c.
func (i Info) Has(c Capability) bool {
	for _, have := range i.Capabilities {
		if have == c {
			return true
		}
	}
	return false
}

// Target is a running system under test. All methods are safe for concurrent
// use.
type Target interface {
	// Info says what the target is and can do; it does not change.
	Info() Info
	// Topology returns the membership as it is now.
	Topology(ctx context.Context) (Topology, error)
	// Do performs one operation and never returns an error: whatever goes
	// wrong is an Outcome and a Code of the reply. It honours ctx's deadline.
	Do(ctx context.Context, op Op) Reply
	// Close stops what the target started and releases what it holds. Nothing
	// that it started is left behind, also when it returns an error.
	Close(ctx context.Context) error
}

// SelfRouting is implemented by a target whose own client library keeps the
// map of the cluster.
type SelfRouting interface {
	Target
	// Open starts one logical client with a map of its own.
	Open(ctx context.Context, client string) (Session, error)
}

// Session is one logical client of a [SelfRouting] target. It is used by one
// goroutine at a time.
type Session interface {
	// Do performs one operation wherever the library routes it. Reply.Hops
	// counts the requests that this took, where it can be known.
	Do(ctx context.Context, op Op) Reply
	Close() error
}

// Placer maps keys to objects, for callers that keep the map themselves.
type Placer interface {
	// Place returns the object that key belongs to. It is a pure function of
	// the key for the life of the target.
	Place(key string) Object
}

// Cause says why metadata was pulled.
type Cause string

// The causes of a pull.
const (
	CauseCold     Cause = "cold"     // no entry was cached
	CauseTTL      Cause = "ttl"      // the cached entry had expired
	CauseMismatch Cause = "mismatch" // a node refused the cached epoch
	CauseGap      Cause = "gap"      // a push was missed
	CausePeriodic Cause = "periodic" // a pull on a schedule
	CauseNode     Cause = "node"     // a data node refreshed its ownership list
)

// Fetch is one pull of metadata.
type Fetch struct {
	// Objects to fetch; empty fetches every object.
	Objects []Object
	Cause   Cause
	Client  string // the logical client or node that asks
}

// Fetcher hands out metadata entries on request.
type Fetcher interface {
	// Fetch returns the entries of the objects asked for. Objects that do not
	// exist are absent from the answer. An error means that the control plane
	// could not answer before ctx ended.
	Fetch(ctx context.Context, f Fetch) ([]Entry, error)
}

// Push is a message of the control plane to one subscriber.
type Push struct {
	// Seq counts the messages of one subscription from 1, without holes: a
	// hole that the subscriber sees is a lost push.
	Seq uint64
	// Entries that changed.
	Entries []Entry
	// ExpireIn, if positive, tells the subscriber to let every cached entry
	// expire that long after the push arrives, whatever its own TTL.
	ExpireIn time.Duration
	// Heartbeat marks a message without news, sent so that a subscriber can
	// see a hole although nothing changes.
	Heartbeat bool
}

// Watcher streams pushes.
type Watcher interface {
	// Watch subscribes and calls deliver for each push, in the order of
	// arrival and one at a time, until ctx ends or the stream breaks. It
	// returns nil when ctx ended and the error otherwise.
	Watch(ctx context.Context, client string, deliver func(Push)) error
}

// Process identifies an operating-system process beyond the reuse of its pid.
type Process struct {
	Node NodeID `json:"node"`
	PID  int    `json:"pid"`
	// Start is the process start time in clock ticks since boot, field 22 of
	// /proc/PID/stat (proc(5)).
	Start uint64 `json:"start"`
	// Boot is /proc/sys/kernel/random/boot_id.
	Boot string `json:"boot"`
}

// Processes is implemented by a target whose nodes are processes on this
// host. Only processes that it lists may be signalled.
type Processes interface {
	Processes() []Process
}

// Restarter restarts nodes.
type Restarter interface {
	// Restart stops the node, starts it again with its disk as it was, and
	// returns once it answers. Its ownership list is empty afterwards, unless
	// the target rebuilds it from disk.
	Restart(ctx context.Context, node NodeID) error
}

// Stage is a moment of a migration that can be observed.
type Stage string

// The stages of a migration. Between handed-over and cleaned the old owner
// holds orphans.
const (
	StageCopied     Stage = "copied"
	StageHandedOver Stage = "handed-over"
	StageCleaned    Stage = "cleaned"
)

// Migrator moves objects between shards.
type Migrator interface {
	// Migrate brings the migration of object to the shard "to" up to and
	// including stage, and returns the entry that is then the truth. Calling
	// it again for a stage that was reached does nothing.
	Migrate(ctx context.Context, object Object, to string, stage Stage) (Entry, error)
}

// TruthKind is what a truth record tells.
type TruthKind string

// The kinds of truth records.
const (
	TruthCommit TruthKind = "commit" // an entry became the truth
	TruthGrant  TruthKind = "grant"  // an entry was handed to a client or node by a pull
	TruthPush   TruthKind = "push"   // a push left for a subscriber, or was dropped by a rule
	TruthStage  TruthKind = "stage"  // a migration reached a stage
)

// Truth is one record of what the control plane committed or granted: the
// only judge of staleness. At is an offset from the run's base instant.
type Truth struct {
	At     time.Duration `json:"at"`
	Kind   TruthKind     `json:"kind"`
	Object Object        `json:"object,omitzero"`
	Epoch  Epoch         `json:"epoch,omitempty"`
	Owner  string        `json:"owner,omitempty"`
	// To is who was granted or pushed to.
	To    string `json:"to,omitempty"`
	Cause Cause  `json:"cause,omitempty"`
	Stage Stage  `json:"stage,omitempty"`
	// Lost marks a push that a rule dropped.
	Lost bool `json:"lost,omitempty"`
	// Objects counts the objects of a grant or push that named several.
	Objects int `json:"objects,omitempty"`
}

// TruthLog streams the truth.
type TruthLog interface {
	// FollowTruth calls deliver for every record since the start of the
	// target, in order and one at a time, until ctx ends. When ctx ends it
	// first delivers what was recorded until then, within a few seconds.
	FollowTruth(ctx context.Context, deliver func(Truth)) error
}

// Rule is an instruction to a target that cooperates: drop pushes, gate
// writes, and so on. Names are those of the fault catalogue.
type Rule struct {
	ID   string            `json:"id"`   // chosen by the caller, unique per target
	Name string            `json:"name"` // for example "push.drop"
	On   Selector          `json:"on"`
	With map[string]string `json:"with,omitempty"`
	// Lease is how long the rule lives unless it is cleared earlier: the node
	// itself drops the rule when the lease lapses.
	Lease time.Duration `json:"lease"`
	// Seed makes the rule's random decisions repeatable.
	Seed uint64 `json:"seed"`
}

// RuleState is what a rule has done so far.
type RuleState struct {
	Armed bool   `json:"armed"`
	Hits  uint64 `json:"hits"` // messages or operations the rule acted on
	Seen  uint64 `json:"seen"` // messages or operations the rule looked at
}

// Cooperator is implemented by a target with a control API for faults.
type Cooperator interface {
	// Rules lists the names that SetRule accepts.
	Rules() []string
	// SetRule arms a rule. Arming an id twice is an error.
	SetRule(ctx context.Context, r Rule) error
	// RuleState reports on a rule; a rule that was never set, was cleared, or
	// has lapsed is not armed. Counts survive clearing.
	RuleState(ctx context.Context, id string) (RuleState, error)
	// ClearRule disarms; clearing what is not armed is no error.
	ClearRule(ctx context.Context, id string) error
}

// Link is a network path of a target that a proxy may stand in.
type Link string

// The links of a target.
const (
	LinkPush Link = "push" // control plane to clients
)

// Proxied is implemented by a target whose links can be routed through a
// proxy.
type Proxied interface {
	// Dial returns the address that the link's server listens on.
	LinkAddr(link Link) (string, error)
	// Reroute makes the link's clients connect through addr, or directly again
	// when addr is empty. Open connections of that link are closed, so that
	// clients reconnect by the new way.
	Reroute(ctx context.Context, link Link, addr string) error
}
