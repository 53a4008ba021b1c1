package plans

import (
	"errors"
	"fmt"
	"strings"
)

// Position is a place in a plan file. Line and column count from 1; 0 means
// that it is not known.
type Position struct {
	File   string
	Line   int
	Column int
}

// String returns file:line:column, or the file alone when that is all that is
// known.
func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Error is one thing that is wrong with a plan.
type Error struct {
	Position Position
	Message  string // what is wrong, and what was expected
	Hint     string // how to mend it; may be empty
}

// Error returns position: message (hint).
func (e *Error) Error() string {
	s := e.Message
	if p := e.Position.String(); p != "" {
		s = p + ": " + s
	}
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

// Errors is everything that is wrong with a plan, in the order of the file.
type Errors []*Error

// Error returns one line per error.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find a single error.
func (es Errors) Unwrap() []error {
	out := make([]error, len(es))
	for i, e := range es {
		out[i] = e
	}
	return out
}

// At gives err the position, unless it has one already.
func At(p Position, err error) error {
	var have *Error
	if errors.As(err, &have) && have.Position.Line != 0 {
		return err
	}
	return &Error{Position: p, Message: err.Error()}
}
