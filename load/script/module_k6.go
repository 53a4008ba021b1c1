package script

import (
	"math/rand/v2"
	"strings"
	"time"

	"github.com/grafana/sobek"
)

// groupSeparator stands between the names in the path of a group, so names
// cannot hold it.
const groupSeparator = "::"

func k6Module(v *vm) Exports {
	return Exports{Named: map[string]any{
		"check": v.check, "group": v.group, "fail": v.fail,
		"sleep": v.sleep, "randomSeed": v.randomSeed,
	}}
}

// check judges a value by named conditions, records a sample for each, and
// returns whether all hold.
func (v *vm) check(call sobek.FunctionCall) sobek.Value {
	if v.inInit {
		v.throw("check: checks cannot be made in init code")
	}
	value := call.Argument(0)
	set, ok := call.Argument(1).(*sobek.Object)
	if !ok {
		v.throwType("check: want an object of named conditions as second argument, got %s", call.Argument(1))
	}
	outer := v.tags
	if extra := call.Argument(2); !sobek.IsUndefined(extra) && !sobek.IsNull(extra) {
		v.tags = v.tagsWith("check", extra)
		defer func() { v.tags = outer }()
	}
	all := true
	for _, name := range set.Keys() {
		if strings.Contains(name, groupSeparator) {
			v.throw("check: the name %q must not hold %q", name, groupSeparator)
		}
		if !v.condition(name, value, set.Get(name)) {
			all = false
		}
	}
	return v.rt.ToValue(all)
}

// condition judges one condition. An exception in it fails the check and goes
// on its way.
func (v *vm) condition(name string, value, condition sobek.Value) bool {
	verdict := condition
	var err error
	if fn, ok := sobek.AssertFunction(condition); ok {
		verdict, err = fn(sobek.Undefined(), value)
	}
	if err == nil && isPromise(verdict) {
		v.throwType("check %q: want a plain function; async functions are not supported as conditions", name)
	}
	holds := err == nil && verdict.ToBoolean()
	tags := v.tags
	if v.program.tagged("check") {
		tags = v.with("check", name)
	}
	v.sample(v.program.builtin.checks, one(holds), tags)
	if err != nil {
		panic(err)
	}
	return holds
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func isPromise(value sobek.Value) bool {
	o, ok := value.(*sobek.Object)
	return ok && o.ClassName() == "Promise"
}

// group runs a function under a longer group tag and measures how long it
// takes.
func (v *vm) group(call sobek.FunctionCall) sobek.Value {
	if v.inInit {
		v.throw("group: groups cannot be used in init code")
	}
	name := call.Argument(0).String()
	fn, ok := sobek.AssertFunction(call.Argument(1))
	switch {
	case !ok:
		v.throwType("group %q: want a function as second argument, got %s", name, call.Argument(1))
	case strings.Contains(name, groupSeparator):
		v.throw("group: the name %q must not hold %q", name, groupSeparator)
	}
	outerTags, outerGroup := v.tags, v.groupPath
	v.enterGroup(outerGroup + groupSeparator + name)
	defer func() { v.tags, v.groupPath = outerTags, outerGroup }()
	start := time.Now()
	result, err := fn(sobek.Undefined())
	v.sample(v.program.builtin.groupDuration, milli(time.Since(start)), v.tags)
	if err != nil {
		panic(err)
	}
	if isPromise(result) {
		v.throwType("group %q: want a plain function; async functions are not supported", name)
	}
	return result
}

// enterGroup makes path the current group.
func (v *vm) enterGroup(path string) {
	v.groupPath = path
	if v.program.tagged("group") {
		v.tags = v.with("group", path)
	}
}

func (v *vm) fail(call sobek.FunctionCall) sobek.Value {
	message := "fail() was called"
	if a := call.Argument(0); !sobek.IsUndefined(a) {
		message = a.String()
	}
	failure, err := v.rt.New(v.rt.Get("Error"), v.rt.ToValue(message))
	if err != nil {
		panic(err)
	}
	panic(failure)
}

// sleep blocks the VU for a number of seconds, or until the iteration is to
// stop.
func (v *vm) sleep(call sobek.FunctionCall) sobek.Value {
	seconds := call.Argument(0).ToFloat()
	if !(seconds > 0) { // also NaN
		return sobek.Undefined()
	}
	v.flush()
	t := time.NewTimer(time.Duration(min(seconds, 1e9) * float64(time.Second)))
	defer t.Stop()
	select {
	case <-t.C:
	case <-v.running.Done():
		// The interrupt is on its way already; so that it comes before the
		// next statement, it is also sent from here.
		v.rt.Interrupt(errCut)
	}
	return sobek.Undefined()
}

func (v *vm) randomSeed(call sobek.FunctionCall) sobek.Value {
	seed := uint64(call.Argument(0).ToInteger())
	v.rt.SetRandSource(rand.New(rand.NewPCG(seed, seed)).Float64)
	return sobek.Undefined()
}
