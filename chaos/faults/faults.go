// Package faults holds the built-in faults and actions, one a file. [All] is
// the bill of materials: nothing registers itself.
package faults

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/metachaos/metachaos/chaos"
	"github.com/metachaos/metachaos/targets"
)

// Options adjust the built-in faults. The zero Options are right for programs.
type Options struct {
	// Controller is the process whose death ends what lives in the controller
	// itself, such as a proxy. Zero means this process; a test names another.
	Controller targets.Process
}

// All returns every built-in fault and action by name, bound to t. With a nil
// t they can be described, validated and recovered, but only primary.freeze
// with mode stop, which works on processes alone, can be planned.
func All(t targets.Target, opts Options) map[string]chaos.Fault {
	out := map[string]chaos.Fault{}
	for _, f := range []chaos.Fault{
		PushDrop(t, opts),
		TTLSynchronize(t, opts),
		PrimaryFreeze(t, opts),
		NodeRestart(t),
		ShardMigrate(t),
	} {
		out[f.Describe().Name] = f
	}
	return out
}

// decode reads the step's configuration over the defaults that into holds.
func decode(step chaos.Step, into any) error {
	if step.Decode == nil {
		return nil
	}
	return step.Decode(into)
}

// decodeState reads a fault's own record back from a handle.
func decodeState(h chaos.Handle, into any) error {
	if err := json.Unmarshal(h.State, into); err != nil {
		return fmt.Errorf("read the state of injection %q: %w", h.ID, err)
	}
	return nil
}

// newHandle makes the handle of a step.
func newHandle(step chaos.Step, touches []string, state any) (chaos.Handle, error) {
	raw, err := json.Marshal(state)
	if err != nil {
		return chaos.Handle{}, fmt.Errorf("write the state of injection %q: %w", step.ID, err)
	}
	return chaos.Handle{ID: step.ID, Fault: step.Fault, Touches: touches, State: raw}, nil
}

func checkShare(share float64) error {
	if math.IsNaN(share) || share <= 0 || share > 1 {
		return fmt.Errorf("share is %v: want more than 0 and at most 1", share)
	}
	return nil
}

// errNoTarget is what planning without a live target gives.
var errNoTarget = errors.New("it needs a live target")

func unknown(err error, howTo string) chaos.Reversal {
	return chaos.Reversal{Undone: chaos.RevertUnknown, Evidence: err.Error(), HowTo: howTo}
}

// nothingToTakeBack is the reversal of an action.
func nothingToTakeBack() chaos.Reversal {
	return chaos.Reversal{Undone: chaos.Reverted, Evidence: "an action leaves nothing to take back"}
}
