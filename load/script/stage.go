package script

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/grafana/sobek"
)

// setup calls the script's setup and returns its result as JSON.
func (x *Execution) setup(ctx context.Context) (json.RawMessage, error) {
	o := x.program.options
	if o.NoSetup || !x.program.exports["setup"] {
		return nil, nil
	}
	limit := errorf(ExitSetupTimeout, "setup ran for more than %v (option setupTimeout)", o.SetupTimeout)
	result, err := x.stage(ctx, "setup", o.SetupTimeout, limit, nil)
	if err != nil || sobek.IsUndefined(result) {
		return nil, err
	}
	text, err := json.Marshal(result.Export())
	if err != nil {
		return nil, errorf(ExitOther, "setup returned what JSON cannot hold: %w", err)
	}
	return text, nil
}

func (x *Execution) teardown(ctx context.Context) error {
	o := x.program.options
	if o.NoTeardown || !x.program.exports["teardown"] {
		return nil
	}
	limit := errorf(ExitTeardownTimeout, "teardown ran for more than %v (option teardownTimeout)", o.TeardownTimeout)
	_, err := x.stage(ctx, "teardown", o.TeardownTimeout, limit, x.setupData)
	return err
}

// stage runs setup or teardown in a runtime of its own.
func (x *Execution) stage(ctx context.Context, name string, timeout time.Duration, limit *Error, data json.RawMessage) (sobek.Value, error) {
	v, err := newVM(ctx, x.program, x, 0)
	if err != nil {
		return nil, err
	}
	defer v.end()
	defer v.release()
	v.groupPath = groupSeparator + name
	v.tags = x.program.stageTags(v.groupPath)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, limit)
	defer cancel()
	result, err := v.run(ctx, func() (sobek.Value, error) {
		arg := sobek.Undefined()
		if data != nil {
			arg = v.parseJSON(data)
		}
		return v.function(name)(sobek.Undefined(), arg)
	})
	if err != nil {
		return nil, withCode(ExitScript, fmt.Errorf("%s: %w", name, err))
	}
	if result == nil {
		result = sobek.Undefined()
	}
	return result, nil
}
