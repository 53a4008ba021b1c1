package targets

import "time"

// EventVerb is what an event records: an operation of the application, or a
// step that a cache client took for it.
type EventVerb string

// The verbs of events.
const (
	EventRead  EventVerb = "read"
	EventWrite EventVerb = "write"
	EventScan  EventVerb = "scan"
	EventPull  EventVerb = "pull" // a cache client fetched metadata
	EventPush  EventVerb = "push" // a cache client received a push
)

// CacheResult is what a client's cache said of the object.
type CacheResult string

// The cache results.
const (
	CacheHit     CacheResult = "hit"
	CacheMiss    CacheResult = "miss"
	CacheExpired CacheResult = "expired"
	CacheNone    CacheResult = "" // no cache took part
)

// Hop is one request of an operation: who was asked with which epoch, and
// what it said.
type Hop struct {
	Node   NodeID `json:"node"`
	Epoch  Epoch  `json:"epoch,omitempty"` // sent
	Served Epoch  `json:"served,omitempty"`
	Code   Code   `json:"code,omitempty"`
	Owner  string `json:"owner,omitempty"`
}

// Event is what happened to one operation, as its client saw it. Start and
// End are offsets from the run's base instant.
type Event struct {
	Start   time.Duration `json:"start"`
	End     time.Duration `json:"end"`
	Client  string        `json:"client"`
	Verb    EventVerb     `json:"verb"`
	Object  Object        `json:"object,omitzero"`
	Key     string        `json:"key,omitempty"`
	Outcome Outcome       `json:"outcome"`
	Code    Code          `json:"code,omitempty"`
	Sent    Epoch         `json:"sent,omitempty"`   // the epoch of the last hop
	Served  Epoch         `json:"served,omitempty"` // the epoch that the node served under
	Node    NodeID        `json:"node,omitempty"`   // the node of the last hop
	Shard   string        `json:"shard,omitempty"`  // its shard
	Cache   CacheResult   `json:"cache,omitempty"`
	Cause   Cause         `json:"cause,omitempty"` // pulls only
	Hops    []Hop         `json:"hops,omitempty"`  // only when there was more than one
	// HopCount is the number of requests, also where the hops are not known.
	HopCount   int    `json:"hop_count,omitempty"`
	Documents  int    `json:"documents,omitempty"`  // returned
	Duplicates int    `json:"duplicates,omitempty"` // of those, ids returned more than once
	Missing    int    `json:"missing,omitempty"`    // documents known to exist and not returned
	Version    uint64 `json:"version,omitempty"`    // of the document read or written
	// Shared marks a pull that waited for another client's fetch (singleflight).
	Shared bool `json:"shared,omitempty"`
	// Seq is the sequence number of a push.
	Seq uint64 `json:"seq,omitempty"`
	// Applied counts the entries of a push or pull that were newer than what
	// the client held.
	Applied int `json:"applied,omitempty"`
}
