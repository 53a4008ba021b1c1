package script

import (
	"encoding/json"
	"slices"

	"github.com/grafana/sobek"
)

// getters are properties that are computed when they are read.
type getters map[string]func() any

func executionModule(v *vm) Exports {
	metrics := v.rt.NewObject()
	// setting plain properties of fresh objects cannot fail
	_ = metrics.Set("tags", v.rt.NewDynamicObject(vuTags{v}))
	_ = metrics.Set("metadata", v.rt.NewObject())
	inRun := func(name string, get func() any) func() any {
		return func() any {
			if v.inInit || v.execution == nil {
				v.throw("exec.%s: there is nothing to tell in init code", name)
			}
			return get()
		}
	}
	// inScenario also excludes setup and teardown.
	inScenario := func(name string, get func() any) func() any {
		return inRun(name, func() any {
			if v.iterations.scenario == nil {
				v.throw("exec.%s: no scenario runs in setup and teardown", name)
			}
			return get()
		})
	}
	it := &v.iterations
	vu := v.object(getters{
		"idInInstance":        inRun("vu.idInInstance", func() any { return v.id }),
		"idInTest":            inRun("vu.idInTest", func() any { return v.idInTest() }),
		"iterationInInstance": inRun("vu.iterationInInstance", func() any { return it.ofVU }),
		"iterationInScenario": inScenario("vu.iterationInScenario", func() any { return it.current.OfVU }),
		"metrics":             inRun("vu.metrics", func() any { return metrics }),
		"tags":                inRun("vu.tags", func() any { return metrics.Get("tags") }),
	})
	scenario := v.object(getters{
		"name":     inScenario("scenario.name", func() any { return it.scenario.Name }),
		"executor": inScenario("scenario.executor", func() any { return it.scenario.Executor.Name() }),
		"startTime": inScenario("scenario.startTime", func() any {
			return it.current.Scenario.StartedAt().UnixMilli()
		}),
		"progress":            inScenario("scenario.progress", func() any { return it.current.Scenario.Progress() }),
		"iterationInInstance": inScenario("scenario.iterationInInstance", func() any { return int64(it.current.InScenario) }),
		"iterationInTest":     inScenario("scenario.iterationInTest", func() any { return int64(it.current.InTest) }),
	})
	live := func() Live { return v.execution.Live() }
	instance := v.object(getters{
		"currentTestRunDuration": inRun("instance.currentTestRunDuration", func() any { return milli(live().Elapsed) }),
		"iterationsCompleted":    inRun("instance.iterationsCompleted", func() any { return int64(live().Load.Completed) }),
		"iterationsInterrupted":  inRun("instance.iterationsInterrupted", func() any { return int64(live().Load.Interrupted) }),
		"vusActive":              inRun("instance.vusActive", func() any { return live().Load.Active }),
		"vusInitialized":         inRun("instance.vusInitialized", func() any { return live().Load.Initialized }),
	})
	return Exports{Named: map[string]any{"vu": vu, "scenario": scenario, "instance": instance, "test": v.testObject()}}
}

// object makes an object of computed properties.
func (v *vm) object(properties getters) *sobek.Object {
	o := v.rt.NewObject()
	for name, get := range properties {
		getter := v.rt.ToValue(func(sobek.FunctionCall) sobek.Value { return v.rt.ToValue(get()) })
		// defining a new property of an extensible object cannot fail
		_ = o.DefineAccessorProperty(name, getter, nil, sobek.FLAG_FALSE, sobek.FLAG_TRUE)
	}
	return o
}

func (v *vm) testObject() *sobek.Object {
	var options sobek.Value
	test := v.object(getters{"options": func() any {
		if options == nil {
			if v.program.options == nil {
				v.throw("exec.test.options: the options are known only after the first init")
			}
			text, err := json.Marshal(v.program.options.All)
			if err != nil {
				panic(v.rt.NewGoError(err))
			}
			options = v.parseJSON(text)
		}
		return options
	}})
	reason := func(call sobek.FunctionCall, otherwise string) string {
		if a := call.Argument(0); !sobek.IsUndefined(a) {
			return a.String()
		}
		return otherwise
	}
	// setting plain properties of a fresh object cannot fail
	_ = test.Set("abort", native(func(call sobek.FunctionCall) sobek.Value {
		v.abort(errorf(ExitAborted, "test aborted: %s", reason(call, "the script called exec.test.abort()")))
		return sobek.Undefined()
	}))
	_ = test.Set("fail", native(func(call sobek.FunctionCall) sobek.Value {
		if v.execution == nil {
			v.throw("exec.test.fail: there is no test to fail in init code")
		}
		v.execution.markFailed(reason(call, "the script called exec.test.fail()"))
		return sobek.Undefined()
	}))
	return test
}

// parseJSON makes a value of the runtime from JSON that this program wrote.
func (v *vm) parseJSON(text []byte) sobek.Value {
	parse, _ := sobek.AssertFunction(v.rt.Get("JSON").ToObject(v.rt).Get("parse"))
	value, err := parse(sobek.Undefined(), v.rt.ToValue(string(text)))
	if err != nil {
		panic(err)
	}
	return value
}

// vuTags is exec.vu.metrics.tags: the tags of the VU as an object that scripts
// can change. They last until the VU goes to another scenario.
type vuTags struct{ v *vm }

var _ sobek.DynamicObject = vuTags{}

func (t vuTags) Get(key string) sobek.Value {
	if value, ok := t.v.tags.Get(key); ok {
		return t.v.rt.ToValue(value)
	}
	return nil
}

func (t vuTags) Set(key string, value sobek.Value) bool {
	text := t.v.tagValue("exec.vu.metrics.tags", key, value)
	t.v.tags = t.v.tags.With(key, text)
	return true
}

func (t vuTags) Has(key string) bool {
	_, ok := t.v.tags.Get(key)
	return ok
}

func (t vuTags) Delete(key string) bool {
	all := t.v.tags.Map()
	delete(all, key)
	t.v.tags = t.v.registry.Tags(all)
	return true
}

func (t vuTags) Keys() []string {
	var keys []string
	for key := range t.v.tags.Map() {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
