package chaos

import (
	"errors"
	"fmt"
)

// StuckError is an injection that could not be shown to be reverted.
type StuckError struct {
	ID       string
	Fault    string
	Reversal Reversal
}

// Error says what is left and how to undo it.
func (e *StuckError) Error() string {
	return fmt.Sprintf("%s: %s; to undo it: %s", e.Reversal.Undone, e.Reversal.Evidence, e.Reversal.HowTo)
}

// Stuck returns every [StuckError] that an error of [Runner.Run] holds.
func Stuck(err error) []*StuckError {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var out []*StuckError
		for _, e := range many.Unwrap() {
			out = append(out, Stuck(e)...)
		}
		return out
	}
	var one *StuckError
	if errors.As(err, &one) {
		return []*StuckError{one}
	}
	return nil
}
