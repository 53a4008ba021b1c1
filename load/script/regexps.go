package script

import (
	"time"

	"github.com/dlclark/regexp2"
)

// LimitRegexps bounds how long one match of a regular expression may take.
//
// Most expressions are matched in linear time. Those with look-around, with
// back-references, or that continue from lastIndex are matched by backtracking,
// which can take longer than any run, and which the end of a run cannot
// interrupt. A match that is given up reads as no match; a script that is to
// stop does so right after.
//
// The limit belongs to the whole process. It must be set before any script is
// loaded, once, by the program and not by a library; without it there is none.
func LimitRegexps(limit time.Duration) { regexp2.DefaultMatchTimeout = limit }
