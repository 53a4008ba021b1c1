package analysis

import (
	"fmt"
	"maps"
	"slices"
)

// readSamples aggregates the samples once more, as the run did, and evaluates
// the thresholds of the script.
func (a *analysis) readSamples() error {
	usable, findings := a.parseThresholds()
	metrics, err := NewMetrics(a.run.Registry(), usable)
	if err != nil {
		return fmt.Errorf("aggregate samples: %w", err)
	}
	for s, err := range a.run.Samples() {
		if err != nil {
			return err
		}
		a.read.Samples.Written++
		metrics.Record(s)
	}
	summary := metrics.Summary(a.end - a.manifest.LoadStart)
	for i := range findings {
		evaluateThreshold(&findings[i], &summary)
	}
	a.thresholds = findings
	return nil
}

// parseThresholds sorts out the thresholds that can be evaluated. The others
// keep why they cannot.
func (a *analysis) parseThresholds() (map[string][]Threshold, []ThresholdFinding) {
	usable := map[string][]Threshold{}
	findings := []ThresholdFinding{}
	for _, metric := range slices.Sorted(maps.Keys(a.manifest.Thresholds)) {
		for _, t := range a.manifest.Thresholds[metric] {
			f := ThresholdFinding{Metric: metric, Expression: t.Expression, Result: Inconclusive}
			one := Threshold{Source: t.Expression, AbortOnFail: t.AbortOnFail}
			if _, err := NewMetrics(a.run.Registry(), map[string][]Threshold{metric: {one}}); err != nil {
				f.Detail = err.Error()
			} else {
				usable[metric] = append(usable[metric], one)
			}
			findings = append(findings, f)
		}
	}
	return usable, findings
}

func evaluateThreshold(f *ThresholdFinding, s *Summary) {
	if f.Detail != "" {
		return
	}
	for _, m := range s.Metrics {
		if !sameSelector(m.Name, f.Metric) {
			continue
		}
		for _, t := range m.Thresholds {
			if t.Source == f.Expression {
				f.Observed = number(t.Observed)
				f.Result = Fail
				if t.OK {
					f.Result = Pass
				}
				return
			}
		}
	}
}

// sameSelector tells whether two selectors pick the same samples however they
// are written.
func sameSelector(a, b string) bool {
	x, errX := ParseSelector(a)
	y, errY := ParseSelector(b)
	return errX == nil && errY == nil && x.Metric == y.Metric && maps.Equal(x.Tags, y.Tags)
}
