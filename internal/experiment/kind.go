package experiment

import (
	"context"
	"encoding/json"

	"github.com/metachaos/metachaos/chaos"
	"github.com/metachaos/metachaos/targets"
)

// Kind is a kind of target that plans can name.
type Kind struct {
	Name    string
	Summary string // one sentence
	// Check decodes and validates a configuration without starting anything.
	Check func(decode func(into any) error) (Forecast, error)
	// Start starts the target; ctx bounds the start only. What it started is
	// returned as well, so that it can be journalled.
	Start func(ctx context.Context, decode func(into any) error, base targets.Base) (targets.Target, chaos.Owned, error)
}

// Forecast is what is known of a target before it is started.
type Forecast struct {
	Offer  chaos.Offer
	Config json.RawMessage // with its defaults
	// Topology is the membership that the target will have; empty if only a
	// running target can tell.
	Topology targets.Topology
}
