package script

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/grafana/sobek"
)

// native is a function of Go that scripts call without reflection.
type native = func(sobek.FunctionCall) sobek.Value

// installGlobals makes what every script finds without an import. A function
// costs about half a KiB in each VU and most scripts use few of them, so they
// stand in the prototype of the global object and are made when asked for.
func (v *vm) installGlobals() error {
	if err := v.rt.Set("__VU", v.id); err != nil {
		return err
	}
	if err := v.rt.Set("__ENV", v.envObject(nil)); err != nil {
		return err
	}
	return v.rt.GlobalObject().SetPrototype(v.rt.NewDynamicObject(&lazyGlobals{v: v}))
}

// lazyGlobals are the globals of one runtime that are made on first use.
type lazyGlobals struct {
	v    *vm
	made map[string]sobek.Value
}

var _ sobek.DynamicObject = (*lazyGlobals)(nil)

// globalNames are the names that global knows.
var globalNames = [...]string{"__ITER", "console", "open", "require", "global", "setTimeout", "setInterval",
	"clearTimeout", "clearInterval", "TextEncoder", "TextDecoder", "crypto", "URL", "URLSearchParams",
	"structuredClone", "queueMicrotask", "performance", "atob", "btoa"}

// global makes the global of that name.
func (v *vm) global(name string) any {
	switch name {
	case "console":
		return v.consoleObject()
	case "open":
		return v.open
	case "require":
		return v.requireGlobal
	case "global":
		return v.rt.GlobalObject()
	case "setTimeout":
		return v.setTimeout
	case "setInterval":
		return v.setInterval
	case "clearTimeout", "clearInterval":
		return v.clearTimer
	case "TextEncoder":
		return v.textEncoder
	case "TextDecoder":
		return v.textDecoder
	case "crypto":
		return v.cryptoObject()
	case "performance":
		return v.performanceObject()
	case "atob":
		return v.atob
	case "btoa":
		return v.btoa
	case "URL", "URLSearchParams", "structuredClone", "queueMicrotask":
		return v.web(name)
	}
	return nil
}

func (g *lazyGlobals) Get(name string) sobek.Value {
	if !g.Has(name) {
		return nil
	}
	if name == "__ITER" { // the only one that changes
		if !g.v.iterations.some {
			return sobek.Undefined()
		}
		return g.v.rt.ToValue(g.v.iterations.ofVU)
	}
	if value, ok := g.made[name]; ok {
		return value
	}
	made := g.v.global(name)
	if made == nil {
		return nil
	}
	if g.made == nil {
		g.made = map[string]sobek.Value{}
	}
	value := g.v.rt.ToValue(made)
	g.made[name] = value
	return value
}

// Set lets scripts replace a global, or make one that is new.
func (g *lazyGlobals) Set(name string, value sobek.Value) bool {
	return g.v.rt.GlobalObject().DefineDataProperty(name, value, sobek.FLAG_TRUE, sobek.FLAG_TRUE, sobek.FLAG_TRUE) == nil
}

func (g *lazyGlobals) Has(name string) bool {
	return slices.Contains(globalNames[:], name) && !(name == "global" && g.v.program.cfg.BaseMode)
}

func (g *lazyGlobals) Delete(string) bool { return true }

func (g *lazyGlobals) Keys() []string {
	return slices.DeleteFunc(slices.Clone(globalNames[:]), func(name string) bool { return !g.Has(name) })
}

// envObject makes __ENV, with the variables of a scenario over those of the
// program.
func (v *vm) envObject(over map[string]string) *sobek.Object {
	env := v.rt.NewObject()
	for _, layer := range []map[string]string{v.program.env, over} {
		for name, value := range layer {
			// setting a plain property of a fresh object cannot fail
			_ = env.Set(name, value)
		}
	}
	return env
}

func (v *vm) consoleObject() *sobek.Object {
	console := v.rt.NewObject()
	for name, level := range map[string]slog.Level{"log": slog.LevelInfo, "info": slog.LevelInfo,
		"debug": slog.LevelDebug, "warn": slog.LevelWarn, "error": slog.LevelError} {
		// setting a plain property of a fresh object cannot fail
		_ = console.Set(name, v.console(level))
	}
	return console
}

func (v *vm) console(level slog.Level) native {
	return func(call sobek.FunctionCall) sobek.Value {
		log := v.program.cfg.Console
		if !log.Enabled(v.running, level) {
			return sobek.Undefined()
		}
		words := make([]string, len(call.Arguments))
		for i, a := range call.Arguments {
			words[i] = show(a)
		}
		log.Log(v.running, level, strings.Join(words, " "), "source", "console")
		return sobek.Undefined()
	}
}

// show returns how console prints a value: text as it is, errors with their
// message, other objects as JSON.
func show(a sobek.Value) string {
	o, ok := a.(*sobek.Object)
	if !ok || o.ClassName() == "Error" || o.ClassName() == "Function" {
		return a.String()
	}
	if text, err := o.MarshalJSON(); err == nil {
		return string(text)
	}
	return a.String()
}

// caller returns the path of the file whose top level runs, which is not
// always the file that calls: a function that another file exports counts as
// part of the file that uses it.
func (v *vm) caller() string {
	if v.commonPath != "" {
		return v.commonPath
	}
	frames := v.rt.CaptureCallStack(0, nil)
	for i := len(frames) - 1; i >= 0; i-- {
		if name := frames[i].SrcName(); strings.ContainsAny(name, "./") && frames[i].Position().Line > 0 {
			return name
		}
	}
	return v.program.loader.source.Path
}

// openBeside reads a file that a file of the script names.
func (v *vm) openBeside(from, name string) (string, error) {
	if isRemote(from) && !strings.HasPrefix(name, "/") && !strings.HasPrefix(name, "file://") {
		return "", fmt.Errorf("open %q: %s came from the network and has no files beside it", name, from)
	}
	return v.program.loader.open(locate(from, name))
}

func (v *vm) open(call sobek.FunctionCall) sobek.Value {
	if !v.inInit {
		v.throw("open: files can be opened in init code only")
	}
	name := call.Argument(0).String()
	if name == "" || sobek.IsUndefined(call.Argument(0)) {
		v.throw("open: want the path of a file, got nothing")
	}
	text, err := v.openBeside(v.caller(), name)
	if err != nil {
		panic(v.rt.NewGoError(err))
	}
	if call.Argument(1).String() == "b" {
		return v.rt.ToValue(v.rt.NewArrayBuffer([]byte(text)))
	}
	return v.rt.ToValue(text)
}

func (v *vm) requireGlobal(call sobek.FunctionCall) sobek.Value {
	return v.require(v.caller())(call)
}

// require returns the function of that name for a file.
func (v *vm) require(from string) native {
	return func(call sobek.FunctionCall) sobek.Value {
		if !v.inInit {
			v.throw("require: modules can be loaded in init code only")
		}
		record, err := v.program.loader.load(from, call.Argument(0).String())
		if err != nil {
			panic(v.rt.NewGoError(fromJS(err)))
		}
		switch r := record.(type) {
		case *nativeRecord:
			r.learn()
			return v.native(r).GetBindingValue("default")
		case *commonRecord:
			i := v.common(r)
			if _, err := i.ExecuteModule(v.rt, nil, nil); err != nil {
				panic(err)
			}
			return i.exports()
		}
		if err := record.Link(); err != nil {
			panic(v.rt.NewGoError(fromJS(err)))
		}
		if p := record.Evaluate(v.rt); p.State() == sobek.PromiseStateRejected {
			panic(v.rt.NewGoError(rejectionOf(p.Result())))
		}
		return v.rt.NamespaceObjectFor(record)
	}
}

func (v *vm) finishImportMeta(meta *sobek.Object, record sobek.ModuleRecord) {
	v.program.loader.mu.RLock()
	from := v.program.loader.paths[record]
	v.program.loader.mu.RUnlock()
	url := func(path string) string {
		if isRemote(path) {
			return path
		}
		return "file://" + locate("/", path)
	}
	// setting plain properties of a fresh object cannot fail
	_ = meta.Set("url", url(from))
	_ = meta.Set("resolve", native(func(call sobek.FunctionCall) sobek.Value {
		if name := call.Argument(0).String(); !isRemote(from) {
			return v.rt.ToValue(url(locate(from, name)))
		} else if at, err := locateRemote(from, name); err == nil {
			return v.rt.ToValue(at)
		}
		v.throwType("import.meta.resolve: want a path or an address, got %s", call.Argument(0))
		return nil
	}))
}
