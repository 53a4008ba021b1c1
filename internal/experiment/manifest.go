package experiment

import (
	"runtime"

	"github.com/metachaos/metachaos/results"
)

// manifest says what the run is, as far as it is known before the start.
func (e *Experiment) manifest() results.Manifest {
	p := e.config.Plan
	m := results.Manifest{
		Name: p.Name, Plan: e.config.PlanText, Seed: e.config.Seed,
		Version: e.config.Version, GoVersion: runtime.Version(), Host: hostFacts(), BaseWall: e.base.Wall().UTC(),
		MinOperations: p.Load.MinOperations,
	}
	if e.usesTarget() {
		m.TargetKind, m.TargetConfig = e.kind.Name, e.forecast.Config
	}
	for _, s := range p.Timeline {
		m.Steps = append(m.Steps, s.ID)
	}
	for _, x := range p.Expect {
		m.Expectations = append(m.Expectations, results.Expectation{Metric: x.Metric, Window: x.Window, Is: x.Is})
	}
	for metric, list := range e.program.Options().Thresholds {
		for _, t := range list {
			if m.Thresholds == nil {
				m.Thresholds = map[string][]results.Threshold{}
			}
			m.Thresholds[metric] = append(m.Thresholds[metric], results.Threshold{Expression: t.Source, AbortOnFail: t.AbortOnFail})
		}
	}
	return m
}

// finish adds what is known only at the end.
func (r *run) finish(m *results.Manifest) {
	m.Topology = r.topology
	for _, metric := range r.registry.Metrics() {
		m.Metrics = append(m.Metrics, *metric)
	}
	m.LoadStart, m.LoadEnd = r.loadStart, r.loadEnd
	m.Interrupted, m.Reason = r.outcome.Interrupted, r.outcome.Reason
	m.Script = r.scriptExit()
}
