package analysis

import (
	"fmt"

	"github.com/metachaos/metachaos/results"
)

// judge says whether the run meets an expectation.
func (a *analysis) judge(e results.Expectation) Finding {
	f := Finding{Metric: e.Metric, Window: e.Window, Is: e.Is, Result: Inconclusive}
	parsed, err := ParseExpectation(e)
	if err != nil {
		f.Detail = err.Error()
		return f
	}
	info, err := LookupMetric(parsed.Metric)
	if err != nil {
		f.Detail = err.Error()
		return f
	}
	f.Metric, f.Window, f.Is, f.Unit = parsed.name(info), parsed.Window.String(), parsed.Condition.String(), info.Unit
	w := a.window(parsed.Window)
	if w == nil {
		f.Detail = a.whyNoWindow(parsed.Window)
		return f
	}
	measured := w.figure(info, parsed.Label)
	f.Evidence = measured.evidence
	if !measured.known() {
		f.Detail = measured.missing
		return f
	}
	f.Detail = measured.detail
	f.Value = number(measured.value)
	observed := measured.value
	if parsed.Condition.Subject == SubjectRatio {
		baseline := a.window(Window{Kind: Baseline}).figure(info, parsed.Label)
		switch {
		case !baseline.known():
			f.Detail = "the baseline has no value to compare with: " + baseline.missing
			return f
		case baseline.value == 0:
			f.Baseline = number(0)
			f.Detail = "the baseline is 0, so there is no ratio to it"
			return f
		}
		observed = measured.value / baseline.value
		f.Baseline, f.Ratio = number(baseline.value), number(observed)
	}
	switch {
	case !parsed.Condition.Holds(observed):
		f.Result = Fail
	case measured.doubt != "":
		f.Detail = measured.doubt
	default:
		f.Result = Pass
	}
	return f
}

func number(v float64) *Number {
	n := Number(v)
	return &n
}

// whyNoWindow explains why a run lacks a window.
func (a *analysis) whyNoWindow(w Window) string {
	for _, f := range a.faults {
		switch {
		case f.ID != w.ID:
		case f.Started == nil:
			return fmt.Sprintf("step %s never started, so there is no window %q", f.ID, w)
		default:
			return fmt.Sprintf("step %s is %s, so there is no window %q", f.ID, f.State, w)
		}
	}
	return fmt.Sprintf("the record has no step %q, so there is no window %q", w.ID, w)
}

// assumptions says what must hold before a pass means anything.
func (a *analysis) assumptions() []Assumption {
	all := []Assumption{a.complete(), a.intact(), a.scriptWorked(), a.loaded()}
	for _, f := range a.faults {
		all = append(all, tookEffect(f))
	}
	return all
}

func (a *analysis) complete() Assumption {
	out := Assumption{Name: "run complete", Held: true, Detail: "the run came to its end"}
	switch {
	case !a.manifest.Complete:
		out.Held, out.Detail = false, "the run folder was never closed: the run crashed or is still going on"
	case a.manifest.Interrupted:
		out.Held, out.Detail = false, "the run was interrupted"
		if a.manifest.Reason != "" {
			out.Detail += ": " + a.manifest.Reason
		}
	}
	return out
}

// scriptWorked asks that at least half of the iterations came to their end
// without an exception: a script that throws has not made the load it stands
// for.
func (a *analysis) scriptWorked() Assumption {
	s := a.manifest.Script
	return Assumption{Name: "script worked", Held: 2*s.FailedIterations <= s.CompletedIterations,
		Detail: fmt.Sprintf("%d of %d iterations ended with an exception", s.FailedIterations, s.CompletedIterations)}
}

// intact compares what was handed over, written, and read.
func (a *analysis) intact() Assumption {
	out := Assumption{Name: "record intact", Held: true, Detail: "no record was lost or damaged"}
	c, damage := a.manifest.Counts, a.run.Damage()
	for _, s := range []struct {
		name          string
		written, read results.Count
		damaged       uint64
	}{
		{"samples", c.Samples, a.read.Samples, damage.Samples},
		{"events", c.Events, a.read.Events, damage.Events},
		{"truth records", c.Truth, a.read.Truth, damage.Truth},
		{"injections", c.Injections, a.read.Injections, damage.Injections},
		{"host records", c.Hosts, a.read.Hosts, damage.Hosts},
	} {
		var wrong string
		switch {
		case s.written.Lost > 0:
			wrong = fmt.Sprintf("%d %s were lost before they were written", s.written.Lost, s.name)
		case s.damaged > 0:
			wrong = fmt.Sprintf("%d lines or segments of %s are damaged", s.damaged, s.name)
		case s.read.Written < s.written.Written:
			wrong = fmt.Sprintf("%d of %d %s are gone", s.written.Written-s.read.Written, s.written.Written, s.name)
		default:
			continue
		}
		if out.Held {
			out.Held, out.Detail = false, wrong
		} else {
			out.Detail += "; " + wrong
		}
	}
	return out
}

func (a *analysis) loaded() Assumption {
	need := uint64(max(0, a.manifest.MinOperations))
	return Assumption{
		Name:   "minimal load",
		Held:   a.operationsDone >= need,
		Detail: fmt.Sprintf("%d operations were done before the first fault; at least %d are needed", a.operationsDone, need),
	}
}

func tookEffect(f FaultReport) Assumption {
	out := Assumption{Name: "fault " + f.ID + " took effect", Held: f.TookEffect(), Detail: f.Evidence}
	if !out.Held {
		out.Detail = "no effect was measured"
		if f.Started == nil {
			out.Detail = "it was never injected"
		}
		if f.Evidence != "" {
			out.Detail += ": " + f.Evidence
		}
	}
	return out
}

// summary tabulates every metric that has a value anywhere.
func (a *analysis) summary() []Row {
	rows := []Row{}
	for _, info := range Catalogue() {
		row := Row{Metric: info.Name, Unit: info.Unit}
		for _, w := range a.windows {
			f, measured := w.figures[info.Name]
			if !measured || !f.known() {
				continue
			}
			switch w.span.window.Kind {
			case Baseline:
				row.Baseline = number(f.value)
			case During:
				if row.During == nil || worse(info.Better, f.value, float64(*row.During)) {
					row.During = number(f.value)
				}
			case After:
				row.After = number(f.value) // windows come in the order of their faults
			}
		}
		if row.Baseline != nil || row.During != nil || row.After != nil {
			rows = append(rows, row)
		}
	}
	return rows
}

func worse(b Better, v, than float64) bool {
	if b == Higher {
		return v < than
	}
	return v > than
}
