package analysis

import (
	"fmt"
	"time"
)

// Evidence points at the records in the run folder that a figure rests on.
type Evidence struct {
	File string `json:"file,omitempty"`
	// FirstLine and LastLine bound the lines of the records; other records may
	// stand between them.
	FirstLine int `json:"first_line,omitempty"`
	LastLine  int `json:"last_line,omitempty"`
	// From and To bound their offsets from the base instant.
	From time.Duration `json:"from,omitempty"`
	To   time.Duration `json:"to,omitempty"`
	// Count is the number of the records.
	Count uint64 `json:"count,omitempty"`
}

// add counts one record that stands in line and spans from to to.
func (e *Evidence) add(file string, line int, from, to time.Duration) {
	if e.Count == 0 {
		*e = Evidence{File: file, FirstLine: line, LastLine: line, From: from, To: to, Count: 1}
		return
	}
	e.FirstLine, e.LastLine = min(e.FirstLine, line), max(e.LastLine, line)
	e.From, e.To = min(e.From, from), max(e.To, to)
	e.Count++
}

// figure is the value of one metric in one window.
type figure struct {
	value  float64
	detail string // the counts behind it, for people
	// missing says what a value would need, when there is none.
	missing string
	// doubt says what could not be judged, when there is a value all the same:
	// it is no ground for a pass.
	doubt    string
	evidence Evidence
}

func (f figure) known() bool { return f.missing == "" }

func unknown(format string, args ...any) figure {
	return figure{missing: fmt.Sprintf(format, args...)}
}

// figures are the values of metrics in one window, by name.
type figures map[string]figure

// share returns n of total, or no value when there is nothing to share.
func share(n, total uint64, of string) figure {
	if total == 0 {
		return unknown("there are no %s in the window", of)
	}
	return figure{value: float64(n) / float64(total), detail: fmt.Sprintf("%d of %d %s", n, total, of)}
}

func count(n uint64) figure { return figure{value: float64(n)} }

// with returns the figure with its evidence.
func (f figure) with(e Evidence) figure {
	f.evidence = e
	return f
}
