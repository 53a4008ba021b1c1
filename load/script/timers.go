package script

import (
	"time"

	"github.com/grafana/sobek"
)

func (v *vm) setTimeout(call sobek.FunctionCall) sobek.Value {
	return v.setTimer("setTimeout", call, false)
}
func (v *vm) setInterval(call sobek.FunctionCall) sobek.Value {
	return v.setTimer("setInterval", call, true)
}

func (v *vm) setTimer(name string, call sobek.FunctionCall, again bool) sobek.Value {
	fn, ok := sobek.AssertFunction(call.Argument(0))
	if !ok {
		v.throwType("%s: want a function, got %s", name, call.Argument(0))
	}
	ms := call.Argument(1).ToFloat()
	if !(ms >= 0) { // also NaN
		ms = 0
	}
	d, err := milliseconds(ms)
	if err != nil {
		v.throwType("%s: %v", name, err)
	}
	var args []sobek.Value
	if len(call.Arguments) > 2 {
		args = append(args, call.Arguments[2:]...)
	}
	every := time.Duration(0)
	if again {
		d = max(d, time.Millisecond) // or nothing else would ever run
		every = d
	}
	return v.rt.ToValue(v.loop.setTimer(d, every, func() error {
		_, err := fn(sobek.Undefined(), args...)
		return err
	}))
}

func (v *vm) clearTimer(call sobek.FunctionCall) sobek.Value {
	v.loop.clearTimer(call.Argument(0).ToInteger())
	return sobek.Undefined()
}
