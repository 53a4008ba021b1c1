package reference

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/metachaos/metachaos/targets/reference/internal/node"
)

// The ways in which a secondary gets its ownership list.
const (
	// ViaPrimary: its own primary refreshes and flushes; the secondary waits
	// for that write to replicate and reads its local copy.
	ViaPrimary = string(node.ViaPrimary)
	// Direct: it asks the control plane itself.
	Direct = string(node.Direct)
	// FromDisk: as ViaPrimary, but a restarted node first rebuilds its list
	// from its local copy.
	FromDisk = string(node.FromDisk)
)

// Config is the "with" of a plan's target. Zero fields mean the defaults.
type Config struct {
	// Shards is the number of shards; 2 by default.
	Shards int `yaml:"shards" json:"shards"`
	// Replicas is the number of nodes of a shard, its primary included; 3 by
	// default.
	Replicas int `yaml:"replicas" json:"replicas"`
	// Objects is the number of objects that keys are spread over; 16 by
	// default.
	Objects int `yaml:"objects" json:"objects"`
	// Documents are loaded before anything else: item-0, item-1, …; 2000 by
	// default.
	Documents int `yaml:"documents" json:"documents"`
	// Refresh is via-primary (the default), direct or from-disk.
	Refresh string `yaml:"refresh" json:"refresh"`
	// RefreshLimit is when a node gives up a refresh; 30s by default.
	RefreshLimit time.Duration `yaml:"refresh_limit" json:"refresh_limit"`
	// Filter makes nodes leave out documents that they do not own; true by
	// default.
	Filter *bool `yaml:"filter" json:"filter"`
	// PushHeartbeat is the time between two heartbeats of a push stream; 500ms
	// by default.
	PushHeartbeat time.Duration `yaml:"push_heartbeat" json:"push_heartbeat"`
	// PullDelay is how long the control plane takes for each pull; none by
	// default.
	PullDelay time.Duration `yaml:"pull_delay" json:"pull_delay"`
}

// Defaults returns the configuration that the zero Config stands for.
func Defaults() Config { return Config{}.WithDefaults() }

// WithDefaults returns c with every zero field replaced by its default.
func (c Config) WithDefaults() Config {
	filter := true
	return Config{
		Shards:        or(c.Shards, 2),
		Replicas:      or(c.Replicas, 3),
		Objects:       or(c.Objects, 16),
		Documents:     or(c.Documents, 2000),
		Refresh:       or(c.Refresh, ViaPrimary),
		RefreshLimit:  or(c.RefreshLimit, 30*time.Second),
		Filter:        or(c.Filter, &filter),
		PushHeartbeat: or(c.PushHeartbeat, 500*time.Millisecond),
		PullDelay:     c.PullDelay,
	}
}

func or[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}

// Validate says everything that is wrong with the configuration.
func (c Config) Validate() error {
	c = c.WithDefaults()
	var errs []error
	within := func(name string, value, low, high int) {
		if value < low || value > high {
			errs = append(errs, fmt.Errorf("%s is %d; want %d to %d", name, value, low, high))
		}
	}
	within("shards", c.Shards, 1, 64)
	within("replicas", c.Replicas, 1, 9)
	within("objects", c.Objects, 1, 10_000)
	within("documents", c.Documents, 1, 1_000_000)
	if modes := []string{ViaPrimary, Direct, FromDisk}; !slices.Contains(modes, c.Refresh) {
		errs = append(errs, fmt.Errorf("refresh is %q; want one of %s", c.Refresh, strings.Join(modes, ", ")))
	}
	lasting := func(name string, value, low, high time.Duration) {
		if value < low || value > high {
			errs = append(errs, fmt.Errorf("%s is %v; want %v to %v", name, value, low, high))
		}
	}
	lasting("refresh_limit", c.RefreshLimit, 10*time.Millisecond, time.Hour)
	lasting("push_heartbeat", c.PushHeartbeat, time.Millisecond, time.Hour)
	lasting("pull_delay", c.PullDelay, 0, time.Minute)
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("configure reference target: %w", err)
	}
	return nil
}

// settings are what the nodes get. c is valid and has its defaults.
func (c Config) settings() node.Settings {
	objects := NewObjects(c.Objects)
	s := node.Settings{Replicas: c.Replicas, Objects: objects, Place: objects.For, Documents: c.Documents,
		Refresh: node.Refresh(c.Refresh), RefreshLimit: c.RefreshLimit, Filter: *c.Filter,
		Heartbeat: c.PushHeartbeat, PullDelay: c.PullDelay}
	for i := range c.Shards {
		s.Shards = append(s.Shards, fmt.Sprintf("s%d", i+1))
	}
	return s
}
