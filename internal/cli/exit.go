package cli

import (
	"errors"
	"fmt"
)

// Exit codes beside those of k6, which errors of the script engine carry.
const (
	exitOK           = 0
	exitFailed       = 99  // a threshold or an expectation failed
	exitConfig       = 104 // a plan, script option or flag value that cannot be used
	exitSignal       = 105 // stopped by a signal
	exitInconclusive = 120
	exitNotReverted  = 121 // a fault could not be shown to be reverted
	exitOther        = 255
)

// codedError is an error that knows the exit code of the command.
type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }
func (e *codedError) ExitCode() int { return e.code }

// withCode decorates err with an exit code; nil stays nil.
func withCode(code int, err error) error {
	if err == nil {
		return nil
	}
	return &codedError{code: code, err: err}
}

// silentError ends a command with a code when everything has been said.
type silentError struct{ code int }

func (e *silentError) Error() string { return fmt.Sprintf("exit status %d", e.code) }
func (e *silentError) ExitCode() int { return e.code }

// exitCode returns the code that err asks for.
func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	var coded interface{ ExitCode() int }
	if errors.As(err, &coded) {
		return coded.ExitCode()
	}
	return exitOther
}
