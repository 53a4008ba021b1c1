package faults

import (
	"context"
	"fmt"
	"time"

	"github.com/metachaos/metachaos/chaos"
	"github.com/metachaos/metachaos/targets"
)

const nameTTLSynchronize = "ttl.synchronize"

type ttlSynchronize struct{ ruling }

var _ chaos.Fault = (*ttlSynchronize)(nil)

// TTLSynchronize returns the fault that makes all cached entries expire at one
// moment.
func TTLSynchronize(t targets.Target, opts Options) chaos.Fault {
	return &ttlSynchronize{ruling{target: t, opts: opts}}
}

type ttlSynchronizeConfig struct {
	In time.Duration `yaml:"in"`
}

func (f *ttlSynchronize) Describe() chaos.Description {
	return chaos.Description{
		Name:    nameTTLSynchronize,
		Summary: "Every cached entry expires at one common moment, so that all clients pull at once.",
		Needs:   []targets.Capability{targets.CapRules},
		Rule:    nameTTLSynchronize,
		Fields: []chaos.Field{
			{Name: "in", Type: "duration", Default: "1s", Summary: "How long after the start of the step the entries expire."},
		},
	}
}

func (f *ttlSynchronize) configure(step chaos.Step) (ttlSynchronizeConfig, error) {
	c := ttlSynchronizeConfig{In: time.Second}
	if err := decode(step, &c); err != nil {
		return c, err
	}
	if c.In <= 0 {
		return c, fmt.Errorf("in is %v: want more than 0s", c.In)
	}
	return c, nil
}

func (f *ttlSynchronize) Validate(step chaos.Step) error {
	_, err := f.configure(step)
	return err
}

func (f *ttlSynchronize) Plan(_ context.Context, step chaos.Step, scope chaos.Scope) (chaos.Handle, error) {
	c, err := f.configure(step)
	if err != nil {
		return chaos.Handle{}, err
	}
	s, err := f.plan(step, scope, nameTTLSynchronize, map[string]string{"in": c.In.String()})
	if err != nil {
		return chaos.Handle{}, err
	}
	return newHandle(step, []string{s.touches()}, s)
}

func (f *ttlSynchronize) Inject(ctx context.Context, h chaos.Handle) error {
	var s ruleState
	if err := decodeState(h, &s); err != nil {
		return err
	}
	return f.inject(ctx, h, s)
}

func (f *ttlSynchronize) Status(ctx context.Context, h chaos.Handle) (chaos.Status, error) {
	var s ruleState
	if err := decodeState(h, &s); err != nil {
		return chaos.Status{}, err
	}
	return f.status(ctx, s)
}

func (f *ttlSynchronize) Revert(ctx context.Context, h chaos.Handle) chaos.Reversal {
	var s ruleState
	if err := decodeState(h, &s); err != nil {
		return unknown(err, "")
	}
	return f.revert(ctx, h, s)
}

func (f *ttlSynchronize) Recover(ctx context.Context, h chaos.Handle) chaos.Reversal {
	var s ruleState
	if err := decodeState(h, &s); err != nil {
		return unknown(err, "")
	}
	return s.recover(ctx, h)
}
