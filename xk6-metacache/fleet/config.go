package fleet

import (
	"fmt"
	"time"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/xk6-metacache/client"
)

// Refresh says when an expired entry is pulled again.
type Refresh string

// The ways to refresh. On demand, the next operation that needs the entry
// pulls it. In the background, every client pulls its expired entries at once
// whether or not anybody reads, as Kafka's clients do with metadata.max.age.ms.
const (
	RefreshDemand     Refresh = "demand"
	RefreshBackground Refresh = "background"
)

// Config describes a fleet.
type Config struct {
	// Clients is the number of logical clients, 1 to [MaxClients].
	Clients int
	Policy  client.Policy
	Refresh Refresh
	// Warm fills the cache of every client when the fleet starts, with one pull.
	// Expiries are then spread as those of clients that have been at work for
	// long: one per client and TTL, at a steady rate from the first moment on.
	Warm bool
	// Read preference and concern of reads and scans.
	Preference targets.Preference
	Concern    targets.Concern
	// Timeout bounds one operation with all its retries and pulls, PullTimeout
	// one pull. While the control plane hangs, an operation falls back to the
	// last known entry only if the pull ends first.
	Timeout, PullTimeout time.Duration
	// Streams is the number of push subscriptions that the clients share.
	Streams int
	// Seed makes every random decision of the fleet repeatable.
	Seed uint64
	// Name prefixes the names of the clients in events: NAME-0, NAME-1, …
	Name string
}

// MaxClients bounds the size of a fleet.
const MaxClients = 10_000_000

// Defaults returns a fleet of 100 clients with the recommended protections.
func Defaults() Config {
	return Config{
		Clients: 100, Policy: client.Recommended(), Refresh: RefreshDemand,
		Preference: targets.PreferSecondary, Concern: targets.ConcernLocal,
		Timeout: 2 * time.Second, PullTimeout: time.Second, Streams: 8, Name: "c",
	}
}

// Validate returns an error that names the field which is out of its range.
func (c Config) Validate() error {
	switch {
	case c.Clients < 1 || c.Clients > MaxClients:
		return fmt.Errorf("clients is %d, want 1 to %d", c.Clients, MaxClients)
	case c.Refresh != RefreshDemand && c.Refresh != RefreshBackground:
		return fmt.Errorf("refresh is %q, want %q or %q", c.Refresh, RefreshDemand, RefreshBackground)
	case c.Preference != targets.PreferPrimary && c.Preference != targets.PreferSecondary:
		return fmt.Errorf("readPreference is %q, want %q or %q", c.Preference, targets.PreferPrimary, targets.PreferSecondary)
	case c.Concern != targets.ConcernLocal && c.Concern != targets.ConcernMajority && c.Concern != targets.ConcernAvailable:
		return fmt.Errorf("readConcern is %q, want %q, %q or %q", c.Concern, targets.ConcernLocal, targets.ConcernMajority, targets.ConcernAvailable)
	case c.Timeout <= 0:
		return fmt.Errorf("timeout is %s, want more than 0", c.Timeout)
	case c.PullTimeout <= 0:
		return fmt.Errorf("pullTimeout is %s, want more than 0", c.PullTimeout)
	case c.Streams < 1:
		return fmt.Errorf("streams is %d, want 1 or more", c.Streams)
	}
	return c.Policy.Validate()
}

// Sink is told what happened, concurrently and in the order in which things
// ended. It must not block for long.
type Sink interface {
	Event(targets.Event)
}

type discard struct{}

var _ Sink = discard{}

func (discard) Event(targets.Event) {}
