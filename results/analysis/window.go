package analysis

import (
	"fmt"
	"strings"
	"time"
)

// WindowKind says which part of a run a window is.
type WindowKind string

// The kinds of windows.
const (
	Whole    WindowKind = "whole"    // from the start of the load to the end of the record
	Baseline WindowKind = "baseline" // from the start of the load to the first injection
	During   WindowKind = "during"   // from the injection of one fault until it was reverted
	After    WindowKind = "after"    // from the end of one fault to the end of the record
)

// Window names a part of a run. ID is the step of During and After.
type Window struct {
	Kind WindowKind
	ID   string
}

// ParseWindow reads whole, baseline, during ID or after ID. The empty text is
// whole.
func ParseWindow(s string) (Window, error) {
	words := strings.Fields(s)
	switch {
	case len(words) == 0:
		return Window{Kind: Whole}, nil
	case len(words) == 1 && (words[0] == string(Whole) || words[0] == string(Baseline)):
		return Window{Kind: WindowKind(words[0])}, nil
	case len(words) == 2 && (words[0] == string(During) || words[0] == string(After)):
		return Window{Kind: WindowKind(words[0]), ID: words[1]}, nil
	}
	return Window{}, fmt.Errorf("bad window %q: want whole, baseline, during ID or after ID, where ID names a step of the timeline", s)
}

// String returns the form that [ParseWindow] reads.
func (w Window) String() string {
	if w.ID == "" {
		return string(w.Kind)
	}
	return string(w.Kind) + " " + w.ID
}

// span is where a window lies in a run. A record belongs to it when its
// offset is from or later, and earlier than to. An open span has no upper
// end: it also takes what came in after the load had ended, and to only says
// how long it counts for rates per second.
type span struct {
	window   Window
	from, to time.Duration
	open     bool
}

func (s span) contains(at time.Duration) bool {
	return at >= s.from && (s.open || at < s.to)
}

// seconds returns the length for rates; 0 for an empty span.
func (s span) seconds() float64 { return max(0, s.to-s.from).Seconds() }

// spans returns the windows that a run has: whole, baseline, and a during and
// an after for each fault that got so far. End is the end of the load.
func spans(start, end time.Duration, faults []FaultReport) []span {
	firstFault := end
	open := true
	for _, f := range faults {
		if f.Started != nil && (open || *f.Started < firstFault) {
			firstFault, open = *f.Started, false
		}
	}
	all := []span{
		{window: Window{Kind: Whole}, from: start, to: end, open: true},
		{window: Window{Kind: Baseline}, from: start, to: firstFault, open: open},
	}
	for _, f := range faults {
		// The fault may act from the moment it is injected; that it is seen to be
		// effective comes up to a poll later, and would miss a short burst.
		from := f.Started
		if from == nil {
			continue
		}
		if f.Ended == nil {
			all = append(all, span{window: Window{During, f.ID}, from: *from, to: end, open: true})
			continue
		}
		all = append(all, span{window: Window{During, f.ID}, from: *from, to: *f.Ended},
			span{window: Window{After, f.ID}, from: *f.Ended, to: end, open: true})
	}
	return all
}
