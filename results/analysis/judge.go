package analysis

import (
	"fmt"
	"time"

	"github.com/metachaos/metachaos/results"
	"github.com/metachaos/metachaos/targets"
)

// Judge reads the record of a run, a few times from end to end, and says what
// it shows. Its memory grows with the numbers of commits, windows and seconds
// with control-plane calls, not with that of operations. It returns an error
// only when the record cannot be read.
func Judge(run *results.Run) (Verdict, error) {
	m := run.Manifest()
	a := &analysis{run: run, manifest: m, history: history{}}
	for _, read := range []func() error{a.readInjections, a.findEnd, a.readTruth, a.readEvents, a.readHosts, a.readSamples} {
		if err := read(); err != nil {
			return Verdict{}, fmt.Errorf("judge run %s: %w", run.Dir(), err)
		}
	}
	a.measure()
	v := Verdict{
		Name: m.Name, Seed: m.Seed, Dir: run.Dir(), LoadStart: m.LoadStart, LoadEnd: a.end,
		Assumptions: a.assumptions(),
		Findings:    make([]Finding, 0, len(m.Expectations)),
		Thresholds:  a.thresholds,
		Faults:      a.faults,
		Summary:     a.summary(),
	}
	for _, e := range m.Expectations {
		v.Findings = append(v.Findings, a.judge(e))
	}
	v.Result = v.conclude()
	return v, nil
}

// analysis is one reading of a run.
type analysis struct {
	run      *results.Run
	manifest results.Manifest
	end      time.Duration // of the load
	faults   []FaultReport
	history  history
	windows  []*windowTally

	grants, pulls       *herdRecord
	sawGrants, sawPulls bool
	read                results.Counts // records read, as Written
	operationsDone      uint64
	thresholds          []ThresholdFinding
}

// windowTally holds every analyzer of one window.
type windowTally struct {
	span         span
	availability *availabilityTally
	push         *pushTally
	tallies      []eventTally
	figures      figures
}

// eventTally is an analyzer of one window. It takes the events in any order.
type eventTally interface {
	event(line int, e *targets.Event)
	// report adds the analyzer's figures. It knows of the run outside of its
	// window what the scene tells.
	report(out figures, s *scene)
}

var _ = []eventTally{(*redirectTally)(nil), (*refusalTally)(nil), (*duplicateTally)(nil),
	(*stalenessTally)(nil), (*availabilityTally)(nil), (*cacheTally)(nil)}

// scene is what analyzers need to know of the rest of the run.
type scene struct {
	hasBaseline bool
	steady      float64 // control-plane calls per second of the baseline
	goodput     float64 // of the baseline; 0 when there is none
	sawPulls    bool
	sawTruth    bool
}

func (a *analysis) newWindow(s span, shardOf map[targets.NodeID]string) *windowTally {
	availability := newAvailabilityTally(s)
	return &windowTally{
		span: s, availability: availability, push: &pushTally{},
		tallies: []eventTally{availability, newRedirectTally(shardOf), newRefusalTally(), &duplicateTally{},
			&stalenessTally{history: a.history}, newCacheTally()},
	}
}

func (a *analysis) readInjections() error {
	tally := newFaultTally(a.manifest.Steps)
	for line, err := range a.run.InjectionLines() {
		if err != nil {
			return err
		}
		a.read.Injections.Written++
		tally.add(line.Number, line.Record)
	}
	a.faults = tally.reports()
	return nil
}

// findEnd determines the windows. A run that crashed did not record the end
// of its load: it takes a pass over the events to find it.
func (a *analysis) findEnd() error {
	a.end = a.manifest.LoadEnd
	if a.end == 0 {
		a.end = a.manifest.LoadStart
		for e, err := range a.run.Events() {
			if err != nil {
				return err
			}
			a.end = max(a.end, e.End)
		}
	}
	shardOf := map[targets.NodeID]string{}
	for _, n := range a.manifest.Topology.Nodes {
		shardOf[n.ID] = n.Shard
	}
	for _, s := range spans(a.manifest.LoadStart, a.end, a.faults) {
		a.windows = append(a.windows, a.newWindow(s, shardOf))
	}
	return nil
}

func (a *analysis) readTruth() error {
	a.grants = newHerdRecord(results.TruthFile)
	for line, err := range a.run.TruthLines() {
		if err != nil {
			return err
		}
		a.read.Truth.Written++
		t := &line.Record
		a.history.add(t)
		if t.Kind == targets.TruthGrant {
			a.sawGrants = true
			a.grants.call(line.Number, t.At, t.Cause)
		}
		for _, w := range a.windows {
			if w.span.contains(t.At) {
				w.push.truth(line.Number, t)
			}
		}
	}
	a.history.sort()
	return nil
}

// readEvents gives every event to the windows that contain its end: an
// operation that a fault cut off belongs to the time of the fault, although
// it started before.
func (a *analysis) readEvents() error {
	a.pulls = newHerdRecord(results.EventsFile)
	baseline := a.window(Window{Kind: Baseline})
	for line, err := range a.run.EventLines() {
		if err != nil {
			return err
		}
		a.read.Events.Written++
		e := &line.Record
		if e.Verb == targets.EventPull {
			a.sawPulls = true
			if !e.Shared {
				a.pulls.call(line.Number, e.Start, e.Cause)
			}
		}
		if isOperation(e.Verb) && e.Outcome == targets.Done && baseline.span.contains(e.End) {
			a.operationsDone++
		}
		for _, w := range a.windows {
			if w.span.contains(e.End) {
				for _, t := range w.tallies {
					t.event(line.Number, e)
				}
			}
		}
	}
	return nil
}

// readHosts looks for damage only: no analyzer reads the host's state.
func (a *analysis) readHosts() error {
	for _, err := range a.run.Hosts() {
		if err != nil {
			return err
		}
		a.read.Hosts.Written++
	}
	return nil
}

// measure turns the tallies into figures.
func (a *analysis) measure() {
	herd := a.grants
	if !a.sawGrants {
		herd = a.pulls
	}
	baseline := a.window(Window{Kind: Baseline})
	s := &scene{
		hasBaseline: baseline.span.seconds() > 0,
		steady:      herd.steady(baseline.span),
		sawPulls:    a.sawPulls,
		sawTruth:    a.read.Truth.Written > 0,
	}
	if g := baseline.availability.goodput(); g.known() {
		s.goodput = g.value
	}
	var recoveries []figure
	for _, w := range a.windows {
		w.figures = figures{}
		for _, t := range w.tallies {
			t.report(w.figures, s)
		}
		w.push.report(w.figures, s)
		herd.report(w.figures, w.span, s)
		if w.span.window.Kind == After {
			recoveries = append(recoveries, w.figures["availability.recovery_time"])
		}
	}
	a.window(Window{Kind: Whole}).figures["availability.recovery_time"] = longestRecovery(recoveries)
}

// window returns the window, or nil when the run has no such window.
func (a *analysis) window(w Window) *windowTally {
	for _, have := range a.windows {
		if have.span.window == w {
			return have
		}
	}
	return nil
}

// figure returns the value of a metric in a window. A label that no record
// carries has the value 0 wherever the metric as a whole has a value.
func (w *windowTally) figure(info MetricInfo, label string) figure {
	whole, measured := w.figures[info.Name]
	if !measured {
		return unknown("%s has no value %s: it is judged in after windows and the whole", info.Name, w.span.window)
	}
	if label == "" || !whole.known() {
		return whole
	}
	if f, ok := w.figures[labelled(info.Name, info.By, label)]; ok {
		return f
	}
	return figure{doubt: whole.doubt}
}
