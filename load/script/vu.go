package script

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/grafana/sobek"

	"github.com/metachaos/metachaos/load"
)

// VU is one virtual user that runs the script.
type VU struct {
	v         *vm
	data      sobek.Value // what setup returned, as this VU sees it
	fn        sobek.Callable
	iteration int64
	playing   *load.Running
}

var _ load.VU = (*VU)(nil)

// NewVU makes a VU with that number, from 1, and runs its init code.
func (x *Execution) NewVU(ctx context.Context, id int) (*VU, error) {
	v, err := newVM(ctx, x.program, x, id)
	if err != nil {
		return nil, fmt.Errorf("initialise VU %d: %w", id, err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.vms = append(x.vms, v)
	return &VU{v: v, iteration: -1}, nil
}

// Iterate runs the function of the scenario once and records the iteration.
// What the script throws is logged, and returned.
func (u *VU) Iterate(ctx context.Context, it load.Iteration) error {
	v := u.v
	if u.playing != it.Scenario {
		if err := u.join(it.Scenario); err != nil {
			return err
		}
	}
	u.iteration++
	for _, f := range v.beforeIteration {
		f()
	}
	v.iterations.current, v.iterations.ofVU, v.iterations.some = it, u.iteration, true
	if v.program.tagged("iter") {
		v.tags = v.tags.With("iter", strconv.FormatInt(u.iteration, 10))
	}
	b := &v.program.builtin
	if it.Paced {
		v.sample(b.lateness, milli(it.Late()), v.tags)
	}
	start := time.Now()
	_, err := v.run(ctx, func() (sobek.Value, error) { return u.fn(sobek.Undefined(), u.data) })
	took := time.Since(start)
	if errors.Is(err, load.ErrInterrupted) {
		return err
	}
	v.sample(b.iterationDuration, milli(took), v.tags)
	v.sample(b.iterations, 1, v.tags)
	v.flush()
	if err != nil && v.aborted == nil {
		v.program.cfg.Logger.Error(Trace(err), "source", "script", "scenario", v.iterations.scenario.Name, "vu", v.id)
	}
	u.pad(ctx, took)
	return err
}

// pad makes a short iteration last as long as the options demand.
func (u *VU) pad(ctx context.Context, took time.Duration) {
	rest := u.v.program.options.MinIterationDuration - took
	if rest <= 0 {
		return
	}
	t := time.NewTimer(rest)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// join prepares the VU for a scenario: its function, variables and tags.
func (u *VU) join(s *load.Running) error {
	v := u.v
	scenario := v.execution.scenarios[s.Scenario.Name]
	u.fn = v.function(scenario.Exec)
	if u.data == nil {
		u.data = sobek.Undefined()
		if data := v.execution.setupData; data != nil {
			u.data = v.parseJSON(data)
		}
	}
	if err := v.rt.Set("__ENV", v.envObject(scenario.Env)); err != nil {
		return fmt.Errorf("set __ENV: %w", err)
	}
	v.groupPath = ""
	v.tags = v.execution.scenarioTags[scenario.Name]
	if v.program.tagged("vu") {
		v.tags = v.tags.With("vu", strconv.Itoa(v.id))
	}
	v.iterations.scenario = scenario
	u.playing = s
	return nil
}
