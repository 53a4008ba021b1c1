package script

import (
	"log/slog"
	"strings"
	"time"

	"github.com/grafana/sobek"
)

// native is a function of Go that scripts call without reflection.
type native = func(sobek.FunctionCall) sobek.Value

// installGlobals makes what every script finds without an import.
func (v *vm) installGlobals() error {
	console := v.rt.NewObject()
	for name, level := range map[string]slog.Level{"log": slog.LevelInfo, "info": slog.LevelInfo,
		"debug": slog.LevelDebug, "warn": slog.LevelWarn, "error": slog.LevelError} {
		if err := console.Set(name, v.console(level)); err != nil {
			return err
		}
	}
	for name, value := range map[string]any{
		"console": console, "open": native(v.open), "require": native(v.requireGlobal), "global": v.rt.GlobalObject(),
		"__VU": v.id, "__ENV": v.envObject(nil),
		"setTimeout": native(v.setTimeout), "setInterval": native(v.setInterval),
		"clearTimeout": native(v.clearTimer), "clearInterval": native(v.clearTimer),
	} {
		if err := v.rt.Set(name, value); err != nil {
			return err
		}
	}
	if err := v.installTextCoding(); err != nil {
		return err
	}
	// read often in some scripts and never in most: computed when asked for
	iter := v.rt.ToValue(func(sobek.FunctionCall) sobek.Value {
		if !v.iterations.some {
			return sobek.Undefined()
		}
		return v.rt.ToValue(v.iterations.ofVU)
	})
	return v.rt.GlobalObject().DefineAccessorProperty("__ITER", iter, nil, sobek.FLAG_TRUE, sobek.FLAG_TRUE)
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

func (v *vm) console(level slog.Level) native {
	return func(call sobek.FunctionCall) sobek.Value {
		log := v.program.cfg.Logger
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

func (v *vm) open(call sobek.FunctionCall) sobek.Value {
	if !v.inInit {
		v.throw("open: files can be opened in init code only")
	}
	name := call.Argument(0).String()
	if name == "" || sobek.IsUndefined(call.Argument(0)) {
		v.throw("open: want the path of a file, got nothing")
	}
	text, err := v.program.loader.open(locate(v.caller(), name))
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
	url := func(path string) string { return "file://" + locate("/", path) }
	// setting plain properties of a fresh object cannot fail
	_ = meta.Set("url", url(from))
	_ = meta.Set("resolve", native(func(call sobek.FunctionCall) sobek.Value {
		return v.rt.ToValue(url(locate(from, call.Argument(0).String())))
	}))
}

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
