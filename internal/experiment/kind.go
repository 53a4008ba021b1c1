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
	// It returns what the target would offer, and the whole configuration with
	// its defaults.
	Check func(decode func(into any) error) (chaos.Offer, json.RawMessage, error)
	// Start starts the target; ctx bounds the start only. What it started is
	// returned as well, so that it can be journalled.
	Start func(ctx context.Context, decode func(into any) error, base targets.Base) (targets.Target, chaos.Owned, error)
}
