package script

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/grafana/sobek"

	"github.com/metachaos/metachaos/load"
)

// vm is one JavaScript runtime with the program loaded: the Host that native
// modules see. It is used by one goroutine at a time.
type vm struct {
	meter
	program   *Program
	execution *Execution // nil in the first init and in handleSummary
	rt        *sobek.Runtime
	loop      loop
	id        int
	inInit    bool
	entry     sobek.ModuleRecord

	running    context.Context // of what runs now; the Host contract hands it out
	armed      context.Context // whose end interrupts the runtime
	disarm     func()
	aborted    error // set by test.abort
	rejections []*sobek.Promise

	natives    map[*nativeRecord]*nativeInstance
	commons    map[*commonRecord]*commonInstance
	commonPath string // of the CommonJS file whose top level runs
	iterations iterationState

	beforeIteration []func()
	atEnd           []func()
	afterRun        []func()
	shared          map[any]any   // what modules keep for each other
	webExports      *sobek.Object // of web.js; nil until used
}

// iterationState is what scripts can ask about the running iteration.
type iterationState struct {
	current  load.Iteration
	some     bool // an iteration has started
	ofVU     int64
	scenario *Scenario
}

var (
	_ Host  = (*vm)(nil)
	_ hooks = (*vm)(nil)
)

// errCut is the value of the interrupt when a context ends.
var errCut = errors.New("interrupted")

// newVM makes a runtime and runs the init code of the program in it.
func newVM(ctx context.Context, p *Program, x *Execution, id int) (*vm, error) {
	v := &vm{program: p, execution: x, rt: sobek.New(), id: id, inInit: true, disarm: func() {},
		natives: map[*nativeRecord]*nativeInstance{}, commons: map[*commonRecord]*commonInstance{}}
	v.meter = newMeter(p, x)
	v.rt.SetMaxCallStackSize(p.cfg.MaxCallDepth)
	v.rt.SetPromiseRejectionTracker(v.trackRejection)
	v.rt.SetFinalImportMeta(v.finishImportMeta)
	if err := v.installGlobals(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.cfg.InitTimeout,
		errorf(ExitTimeout, "init code ran for more than %v: it must end by itself", p.cfg.InitTimeout))
	defer cancel()
	defer v.release()
	p.loader.enter(v)
	defer p.loader.leave(v)
	if _, err := v.run(ctx, v.evaluate); err != nil {
		return nil, withCode(ExitScript, err)
	}
	v.inInit = false
	return v, nil
}

// evaluate runs the entry module and, with it, all that it imports.
func (v *vm) evaluate() (sobek.Value, error) {
	record, err := v.program.loader.load("", v.program.loader.source.Path)
	if err != nil {
		return nil, err
	}
	if v.program.linked != record {
		if err := record.Link(); err != nil {
			return nil, err
		}
		v.program.linked = record
	}
	v.entry = record
	promise := record.Evaluate(v.rt)
	return v.rt.ToValue(promise), nil
}

// export returns what the entry module exports under a name, or nil.
func (v *vm) export(name string) sobek.Value {
	if c, ok := v.entry.(*commonRecord); ok { // "default" is a property like others there
		return v.common(c).property(name)
	}
	b, ambiguous := v.entry.ResolveExport(name)
	if b == nil || ambiguous {
		return nil
	}
	instance := v.rt.GetModuleInstance(b.Module)
	if instance == nil {
		return nil
	}
	value := instance.GetBindingValue(b.BindingName)
	if value == nil || sobek.IsUndefined(value) {
		return nil
	}
	return value
}

// function returns an exported function, or nil.
func (v *vm) function(name string) sobek.Callable {
	fn, _ := sobek.AssertFunction(v.export(name))
	return fn
}

// run executes first and all that comes of it, and returns its value; of a
// promise, what it was fulfilled with. When ctx ends first, the error wraps
// [load.ErrInterrupted] and the cause.
func (v *vm) run(ctx context.Context, first func() (sobek.Value, error)) (result sobek.Value, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errorf(ExitPanic, "the script engine failed: %v\n%s", p, debug.Stack())
		}
		for _, f := range v.afterRun {
			f()
		}
		v.flush()
	}()
	v.running, v.aborted = ctx, nil
	v.rejections = v.rejections[:0]
	v.arm(ctx)
	err = v.loop.run(ctx, v, func() error {
		var err error
		result, err = first()
		return err
	})
	if v.aborted != nil {
		v.release() // clears the interrupt
		return nil, v.aborted
	}
	var interrupted *sobek.InterruptedError
	if err != nil && ctx.Err() != nil && (errors.As(err, &interrupted) || errors.Is(err, causeOf(ctx))) {
		return nil, fmt.Errorf("%w: %w", load.ErrInterrupted, causeOf(ctx))
	}
	if err != nil {
		return nil, fromJS(err)
	}
	if o, ok := result.(*sobek.Object); ok {
		if p, ok := o.Export().(*sobek.Promise); ok {
			return v.fulfilled(ctx, p)
		}
	}
	return result, nil
}

func (v *vm) fulfilled(ctx context.Context, p *sobek.Promise) (sobek.Value, error) {
	switch p.State() {
	case sobek.PromiseStateFulfilled:
		return p.Result(), nil
	case sobek.PromiseStateRejected:
		return nil, rejectionOf(p.Result())
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%w: %w", load.ErrInterrupted, causeOf(ctx))
	}
	if v.inInit {
		return nil, errors.New("a top-level await waits for a promise that never settles")
	}
	return sobek.Undefined(), nil // like a callback that is never called
}

// arm has the end of ctx interrupt the runtime. Iterations in a row share
// their context, and so pay for this once.
func (v *vm) arm(ctx context.Context) {
	if v.armed == ctx {
		return
	}
	v.release()
	fired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		v.rt.Interrupt(errCut)
		close(fired)
	})
	v.armed = ctx
	v.disarm = func() {
		if !stop() {
			<-fired
		}
	}
}

// release takes back what arm did, and any interrupt.
func (v *vm) release() {
	v.disarm()
	v.disarm, v.armed = func() {}, nil
	v.rt.ClearInterrupt()
}

// abort ends the run of the whole test, and this runtime at once and beyond
// any try.
func (v *vm) abort(err *Error) {
	v.aborted = err
	if v.execution != nil {
		v.execution.cancel(err)
	}
	v.rt.Interrupt(err)
}

// settle reports a promise that was rejected and has no handler.
func (v *vm) settle() error {
	if len(v.rejections) == 0 {
		return nil
	}
	return rejectionOf(v.rejections[0].Result())
}

// idle lets others see the samples before a wait.
func (v *vm) idle() { v.flush() }

func (v *vm) trackRejection(p *sobek.Promise, op sobek.PromiseRejectionOperation) {
	if op == sobek.PromiseRejectionReject {
		v.rejections = append(v.rejections, p)
		return
	}
	for i, o := range v.rejections {
		if o == p {
			v.rejections = append(v.rejections[:i], v.rejections[i+1:]...)
			return
		}
	}
}

func (v *vm) native(r *nativeRecord) *nativeInstance {
	i := v.natives[r]
	if i == nil {
		i = &nativeInstance{rt: v.rt, exports: r.module.Exports(v), values: map[string]sobek.Value{}}
		v.natives[r] = i
	}
	return i
}

func (v *vm) common(r *commonRecord) *commonInstance {
	i := v.commons[r]
	if i == nil {
		i = &commonInstance{record: r, module: v.rt.NewObject()}
		// setting a plain property of a fresh object cannot fail
		_ = i.module.Set("exports", v.rt.NewObject())
		v.commons[r] = i
	}
	return i
}

// Context returns the context of what runs now.
func (v *vm) Context() context.Context { return v.running }

// Runtime returns the JavaScript runtime.
func (v *vm) Runtime() *sobek.Runtime { return v.rt }

// RegisterCallback keeps the running iteration open; see [Host].
func (v *vm) RegisterCallback() func(func() error) { return v.loop.register() }

// InInit reports whether init code is running.
func (v *vm) InInit() bool { return v.inInit }

// VU returns the number of the VU, from 1; 0 in the first init and in setup,
// teardown and handleSummary.
func (v *vm) VU() int { return v.id }

// Meter returns the meter of the VU.
func (v *vm) Meter() Meter { return v }

// throw raises an error of Go as a JavaScript exception.
func (v *vm) throw(format string, args ...any) {
	panic(v.rt.NewGoError(fmt.Errorf(format, args...)))
}

// throwType raises a TypeError.
func (v *vm) throwType(format string, args ...any) {
	panic(v.rt.NewTypeError(fmt.Sprintf(format, args...)))
}
