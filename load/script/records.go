package script

import (
	"fmt"
	"maps"
	"slices"

	"github.com/grafana/sobek"
)

// nativeRecord presents a [Module] to the JavaScript engine. It is shared by
// all runtimes; nativeInstance is what one runtime sees.
type nativeRecord struct {
	name   string
	module Module
	loader *loader
	names  []string // of the exports, sorted; known once a runtime linked it
}

type nativeInstance struct {
	rt      *sobek.Runtime
	exports Exports
	values  map[string]sobek.Value // made on first use
}

var (
	_ sobek.CyclicModuleRecord   = (*nativeRecord)(nil)
	_ sobek.CyclicModuleInstance = (*nativeInstance)(nil)
)

// learn makes the exports in the runtime of the first init, which links.
func (r *nativeRecord) learn() {
	if r.names != nil {
		return
	}
	r.loader.mu.RLock()
	var first *vm
	for _, v := range r.loader.vms {
		first = v
	}
	r.loader.mu.RUnlock()
	names := slices.Collect(maps.Keys(first.native(r).exports.Named))
	if !slices.Contains(names, "default") {
		names = append(names, "default")
	}
	slices.Sort(names)
	r.names = names
}

func (r *nativeRecord) GetExportedNames(callback func([]string), _ ...sobek.ModuleRecord) bool {
	r.learn()
	callback(r.names)
	return true
}

func (r *nativeRecord) ResolveExport(name string, _ ...sobek.ResolveSetElement) (*sobek.ResolvedBinding, bool) {
	r.learn()
	if !slices.Contains(r.names, name) {
		return nil, false
	}
	return &sobek.ResolvedBinding{Module: r, BindingName: name}, false
}

func (r *nativeRecord) Link() error                  { return nil }
func (r *nativeRecord) InitializeEnvironment() error { return nil }
func (r *nativeRecord) RequestedModules() []string   { return nil }

func (r *nativeRecord) Evaluate(rt *sobek.Runtime) *sobek.Promise {
	return rt.CyclicModuleRecordEvaluate(r, r.loader.resolve)
}

func (r *nativeRecord) Instantiate(rt *sobek.Runtime) (sobek.CyclicModuleInstance, error) {
	v := r.loader.vmOf(rt)
	if v == nil {
		return nil, fmt.Errorf("import %q: modules can be imported in init code only", r.name)
	}
	return v.native(r), nil
}

func (i *nativeInstance) HasTLA() bool { return false }

func (i *nativeInstance) ExecuteModule(*sobek.Runtime, func(any) error, func(any) error) (sobek.CyclicModuleInstance, error) {
	return i, nil
}

func (i *nativeInstance) GetBindingValue(name string) sobek.Value {
	if v, ok := i.values[name]; ok {
		return v
	}
	var v sobek.Value
	switch export, ok := i.exports.Named[name]; {
	case ok:
		v = i.rt.ToValue(export)
	case name == "default" && i.exports.Default != nil:
		v = i.rt.ToValue(i.exports.Default)
	case name == "default":
		all := i.rt.NewObject()
		for _, n := range slices.Sorted(maps.Keys(i.exports.Named)) {
			// setting a plain property of a fresh object cannot fail
			_ = all.Set(n, i.GetBindingValue(n))
		}
		v = all
	default:
		v = sobek.Undefined()
	}
	i.values[name] = v
	return v
}

// commonRecord presents a CommonJS file to the JavaScript engine. Its exports
// are known only after it ran, so linking accepts every name.
type commonRecord struct {
	program *sobek.Program
	loader  *loader
	path    string
}

type commonInstance struct {
	record *commonRecord
	module *sobek.Object // its property exports is what the file exports
	ran    bool
}

var (
	_ sobek.CyclicModuleRecord   = (*commonRecord)(nil)
	_ sobek.CyclicModuleInstance = (*commonInstance)(nil)
)

func (r *commonRecord) GetExportedNames(callback func([]string), _ ...sobek.ModuleRecord) bool {
	callback([]string{"default"})
	return true
}

func (r *commonRecord) ResolveExport(name string, _ ...sobek.ResolveSetElement) (*sobek.ResolvedBinding, bool) {
	return &sobek.ResolvedBinding{Module: r, BindingName: name}, false
}

func (r *commonRecord) Link() error                  { return nil }
func (r *commonRecord) InitializeEnvironment() error { return nil }
func (r *commonRecord) RequestedModules() []string   { return nil }

func (r *commonRecord) Evaluate(rt *sobek.Runtime) *sobek.Promise {
	return rt.CyclicModuleRecordEvaluate(r, r.loader.resolve)
}

func (r *commonRecord) Instantiate(rt *sobek.Runtime) (sobek.CyclicModuleInstance, error) {
	v := r.loader.vmOf(rt)
	if v == nil {
		return nil, fmt.Errorf("import %q: modules can be imported in init code only", r.path)
	}
	return v.common(r), nil
}

func (i *commonInstance) HasTLA() bool { return false }

func (i *commonInstance) ExecuteModule(rt *sobek.Runtime, _, _ func(any) error) (sobek.CyclicModuleInstance, error) {
	if i.ran {
		return i, nil
	}
	i.ran = true // before it runs, so that a cycle ends here with what is there by then
	value, err := rt.RunProgram(i.record.program)
	if err != nil {
		return nil, err
	}
	body, _ := sobek.AssertFunction(value)
	v := i.record.loader.vmOf(rt)
	outer := v.commonPath
	v.commonPath = i.record.path
	defer func() { v.commonPath = outer }()
	exports := i.module.Get("exports")
	if _, err := body(exports, i.module, exports, rt.ToValue(v.require(i.record.path))); err != nil {
		return nil, err
	}
	return i, nil
}

func (i *commonInstance) exports() sobek.Value { return i.module.Get("exports") }

func (i *commonInstance) GetBindingValue(name string) sobek.Value {
	if name == "default" {
		if es := i.property("__esModule"); es == nil || !es.ToBoolean() {
			return i.exports()
		}
	}
	if v := i.property(name); v != nil {
		return v
	}
	return sobek.Undefined()
}

// property returns a property of what the file exports, or nil.
func (i *commonInstance) property(name string) sobek.Value {
	if exports, ok := i.exports().(*sobek.Object); ok {
		return exports.Get(name)
	}
	return nil
}
