package script

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/grafana/sobek"
	"github.com/grafana/sobek/parser"
)

// Exit statuses of the program, as k6 defines them.
const (
	ExitThreshold       = 99  // a threshold was crossed
	ExitSetupTimeout    = 100 // setup took too long
	ExitTeardownTimeout = 101 // teardown took too long
	ExitTimeout         = 102 // something else took too long
	ExitConfig          = 104 // the options make no sense
	ExitInterrupted     = 105 // a signal ended the run
	ExitScript          = 107 // init, setup or teardown threw, or the script cannot be read
	ExitAborted         = 108 // the script called test.abort
	ExitPanic           = 109 // a defect of this program
	ExitMarkedFailed    = 110 // the script called test.fail
	ExitOther           = 255
)

// Error is an error with an exit status.
type Error struct {
	Code int
	err  error
}

// Error returns the message.
func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.err }

// ExitCode is the exit status of the program for this error.
func (e *Error) ExitCode() int { return e.Code }

func errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, err: fmt.Errorf(format, args...)}
}

// withCode attaches an exit status unless the error brings one along.
func withCode(code int, err error) error {
	var coded interface{ ExitCode() int }
	if err == nil || errors.As(err, &coded) {
		return err
	}
	return &Error{Code: code, err: err}
}

// Exception is a JavaScript exception, or a promise that was rejected and not
// handled.
type Exception struct { //nolint:errname // the word of the language it comes from
	Message string   // "TypeError: x is not a function"
	Stack   []string // "risky (lib/risky.js:4:9)", innermost first
}

// Error returns the message and the innermost place.
func (e *Exception) Error() string {
	if len(e.Stack) == 0 {
		return e.Message
	}
	return e.Message + " at " + e.Stack[0]
}

// Trace returns the message and all places, one a line.
func (e *Exception) Trace() string {
	var b strings.Builder
	b.WriteString(e.Message)
	for _, place := range e.Stack {
		b.WriteString("\n\tat ")
		b.WriteString(place)
	}
	return b.String()
}

// Trace returns the message of err, with all places of the script that an
// exception within it names.
func Trace(err error) string {
	var ex *Exception
	if !errors.As(err, &ex) {
		return err.Error()
	}
	return strings.Replace(err.Error(), ex.Error(), ex.Trace(), 1)
}

// fromJS turns an error of the JavaScript engine into one of ours.
func fromJS(err error) error {
	var (
		interrupted *sobek.InterruptedError
		overflow    *sobek.StackOverflowError
		exception   *sobek.Exception
		syntax      *sobek.CompilerSyntaxError
		reference   *sobek.CompilerReferenceError
		list        parser.ErrorList
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &interrupted):
		if cause, ok := interrupted.Value().(error); ok {
			return cause
		}
		return fmt.Errorf("interrupted: %v", interrupted.Value())
	case errors.As(err, &overflow):
		return &Exception{Message: "RangeError: the call stack is too deep (endless recursion?)", Stack: places(overflow.Stack())}
	case errors.As(err, &exception):
		return exceptionOf(exception)
	case errors.As(err, &list) && len(list) > 0:
		p := list[0].Position
		return fmt.Errorf("SyntaxError: %s:%d:%d: %s", p.Filename, p.Line, p.Column, list[0].Message)
	case errors.As(err, &syntax):
		return errors.New(compilerMessage("SyntaxError", syntax.CompilerError))
	case errors.As(err, &reference):
		return errors.New(compilerMessage("ReferenceError", reference.CompilerError))
	}
	return err
}

func compilerMessage(kind string, e sobek.CompilerError) string {
	if e.File == nil {
		return kind + ": " + e.Message
	}
	p := e.File.Position(e.Offset)
	return fmt.Sprintf("%s: %s:%d:%d: %s", kind, p.Filename, p.Line, p.Column, e.Message)
}

// exceptionOf keeps an error of Go that native code threw, so that its exit
// status survives the way through JavaScript.
func exceptionOf(e *sobek.Exception) error {
	ex := &Exception{Message: messageOf(e.Value()), Stack: places(e.Stack())}
	if cause := e.Unwrap(); cause != nil {
		ex.Message = cause.Error()
		var coded *Error
		if errors.As(cause, &coded) {
			return &Error{Code: coded.Code, err: ex}
		}
	}
	return ex
}

// rejectionOf describes the reason of a rejected promise. The places come
// from the stack property that an Error got where it was made.
func rejectionOf(reason sobek.Value) error {
	if o, ok := reason.(*sobek.Object); ok {
		if err, ok := o.Export().(error); ok {
			var e *sobek.Exception
			if errors.As(err, &e) {
				return exceptionOf(e)
			}
			return fromJS(err)
		}
		ex := &Exception{Message: messageOf(reason)}
		if stack := o.Get("stack"); stack != nil && !sobek.IsUndefined(stack) {
			ex.Stack = placesOfText(stack.String())
		}
		return ex
	}
	return &Exception{Message: messageOf(reason)}
}

func messageOf(v sobek.Value) string {
	if v == nil {
		return "undefined"
	}
	if o, ok := v.(*sobek.Object); ok && o.ClassName() != "Error" {
		if text, err := o.MarshalJSON(); err == nil && string(text) != "{}" {
			return string(text)
		}
	}
	return v.String()
}

func places(frames []sobek.StackFrame) []string {
	var all []string
	for _, f := range frames {
		p := f.Position()
		if p.Filename == "" || p.Line == 0 {
			continue // native
		}
		place := fmt.Sprintf("%s:%d:%d", p.Filename, p.Line, p.Column)
		if name := f.FuncName(); name != "" && name != "<anonymous>" {
			place = name + " (" + place + ")"
		}
		all = append(all, place)
	}
	return all
}

// placesOfText reads the stack property: lines of "at name (file:1:2(34))",
// where the last number is of no use to people.
func placesOfText(stack string) []string {
	var all []string
	for line := range strings.Lines(stack) {
		place, ok := strings.CutPrefix(strings.TrimSpace(line), "at ")
		if !ok || strings.Contains(place, "native") {
			continue
		}
		name, at, named := strings.Cut(place, " (")
		if !named {
			at = place
		} else {
			at = strings.TrimSuffix(at, ")")
		}
		if i := strings.LastIndexByte(at, '('); i > 0 {
			at = at[:i]
		}
		if named {
			at = name + " (" + at + ")"
		}
		all = append(all, at)
	}
	return all
}

// causeOf returns why ctx ended.
func causeOf(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}
