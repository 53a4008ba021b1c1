package targets

import "time"

// Verb is what an operation does.
type Verb string

// The verbs that a target performs.
const (
	VerbRead  Verb = "read"
	VerbWrite Verb = "write"
	// VerbScan reads every document that one node holds for its shard. A
	// scatter read is one VerbScan per shard.
	VerbScan Verb = "scan"
)

// Concern is the read concern of an operation.
type Concern string

// The read concerns. Available skips the version check and the ownership
// filter: it answers, and may return orphans.
const (
	ConcernLocal     Concern = "local"
	ConcernMajority  Concern = "majority"
	ConcernAvailable Concern = "available"
)

// Preference decides where a read goes, never where a node gets its metadata.
type Preference string

// The read preferences. Writes always go to the primary.
const (
	PreferPrimary   Preference = "primary"
	PreferSecondary Preference = "secondary"
)

// Op is one request to one node. The caller has routed it already, unless the
// target routes by itself ([SelfRouting]), which ignores Node, Object and
// Epoch.
type Op struct {
	Verb    Verb
	Node    NodeID // the node addressed
	Object  Object // the object that Key belongs to; zero for scans
	Key     string
	Value   []byte  // writes only
	Epoch   Epoch   // the epoch the caller holds; 0 sends none, and the node cannot check
	Concern Concern // reads and scans; empty is local
	// Epochs are the epochs the caller holds for every object, for scans. Nil
	// sends none.
	Epochs map[Object]Epoch
	// Client names the logical client, for rules that select by client.
	Client string
}

// Outcome is how an operation ended, as far as the caller can know.
type Outcome string

// The outcomes. Unknown (a time-out, a cut connection) stays open in a
// history: the operation may have happened.
const (
	Done    Outcome = "done"
	Refused Outcome = "refused"
	Unknown Outcome = "unknown"
)

// Code says why an operation was refused or is unknown. It is empty when done.
type Code string

// The codes that targets share. A target may add its own.
const (
	CodeStaleEpoch       Code = "STALE_EPOCH"       // the node holds a newer epoch than the request
	CodeNodeBehind       Code = "NODE_BEHIND"       // the node holds an older epoch and is refreshing
	CodeUnknownOwnership Code = "UNKNOWN_OWNERSHIP" // the node has no entry in memory and is refreshing
	CodeNotOwner         Code = "NOT_OWNER"         // same epoch, but another shard owns the object
	CodeNotPrimary       Code = "NOT_PRIMARY"       // a write sent to a node that takes none
	CodeMigrating        Code = "MIGRATING"         // the object is being handed over; retry
	CodeTimeout          Code = "TIMEOUT"           // the deadline passed: unknown
	CodeUnavailable      Code = "UNAVAILABLE"       // no connection could be had: refused, nothing was sent
	CodeConnectionLost   Code = "CONNECTION_LOST"   // the connection broke with the request under way: unknown
	CodeRetriesExhausted Code = "RETRIES_EXHAUSTED" // the client's retry limit was reached
	CodeRedirectLimit    Code = "REDIRECT_LIMIT"    // the client's redirect limit was reached
	CodeControlDown      Code = "CONTROL_DOWN"      // the control plane could not be reached for a pull
	CodeInternal         Code = "INTERNAL"          // an error of the target itself
)

// Document is one stored document.
type Document struct {
	ID      string
	Value   []byte
	Version uint64 // grows with every write of this document
}

// Reply is a node's answer to one [Op].
type Reply struct {
	Outcome Outcome
	Code    Code
	Detail  string // for people; never parsed
	// Epoch and Owner are what the answering node holds for the object: with
	// Done the epoch it served under (0: it checked none), with Refused the
	// redirect it offers (0 and empty: it knows none).
	Epoch Epoch
	Owner string
	// Node and Shard say who answered.
	Node      NodeID
	Shard     string
	Documents []Document
	// Hops counts the requests that the target's own client library sent; 1
	// unless the target is [SelfRouting].
	Hops int
	// RetryAfter is the node's hint how long to wait before a retry.
	RetryAfter time.Duration
}
