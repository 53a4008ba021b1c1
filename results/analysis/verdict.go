package analysis

import "time"

// Result is what a check came to.
type Result string

// The results. Inconclusive means that the run gives no ground for either.
const (
	Pass         Result = "pass"
	Fail         Result = "fail"
	Inconclusive Result = "inconclusive"
)

// Verdict is everything that is said of a run. The same run folder gives the
// same verdict, byte for byte, wherever it lies. Offsets are in nanoseconds
// from the run's base instant.
type Verdict struct {
	Result Result `json:"result"`
	Name   string `json:"name"`
	Seed   uint64 `json:"seed"`
	// Dir is the path of the run folder, as it was opened.
	Dir string `json:"-"`
	// LoadStart and LoadEnd bound the load; for a run that crashed, LoadEnd is
	// the end of the record.
	LoadStart time.Duration `json:"load_start"`
	LoadEnd   time.Duration `json:"load_end"`
	// Assumptions gate the rest: when one does not hold, nothing passes.
	Assumptions []Assumption       `json:"assumptions"`
	Findings    []Finding          `json:"findings"`
	Thresholds  []ThresholdFinding `json:"thresholds"`
	Faults      []FaultReport      `json:"faults"`
	Summary     []Row              `json:"summary"`
}

// Assumption is something that must hold before a pass means anything.
type Assumption struct {
	Name   string `json:"name"`
	Held   bool   `json:"held"`
	Detail string `json:"detail"`
}

// Finding is the judgement of one expectation.
type Finding struct {
	Metric string `json:"metric"`
	Unit   string `json:"unit,omitempty"`
	Window string `json:"window"`
	Is     string `json:"is"`
	// Value is the metric's value in the window; nil when there is none.
	Value *Number `json:"value,omitempty"`
	// Baseline is its value in the baseline, and Ratio the one over the other,
	// for expectations that compare with it.
	Baseline *Number `json:"baseline,omitempty"`
	Ratio    *Number `json:"ratio,omitempty"`
	Result   Result  `json:"result"`
	// Detail is the counts behind the value, or why there is no result.
	Detail   string   `json:"detail,omitempty"`
	Evidence Evidence `json:"evidence,omitzero"`
}

// ThresholdFinding is the judgement of one threshold of the script.
type ThresholdFinding struct {
	Metric     string  `json:"metric"`
	Expression string  `json:"expression"`
	Observed   *Number `json:"observed,omitempty"`
	Result     Result  `json:"result"`
	Detail     string  `json:"detail,omitempty"`
}

// Row is one metric of the summary: its value in the baseline, the worst of
// the during windows, and that of the last after window. Nil means none.
type Row struct {
	Metric   string  `json:"metric"`
	Unit     string  `json:"unit"`
	Baseline *Number `json:"baseline"`
	During   *Number `json:"during"`
	After    *Number `json:"after"`
}

// conclude combines everything: a failure stays a failure whatever else is
// wrong, and a pass needs every assumption to hold.
func (v *Verdict) conclude() Result {
	result := Pass
	worsen := func(r Result) {
		if r == Fail || r == Inconclusive && result == Pass {
			result = r
		}
	}
	for _, a := range v.Assumptions {
		if !a.Held {
			worsen(Inconclusive)
		}
	}
	for _, f := range v.Findings {
		worsen(f.Result)
	}
	for _, t := range v.Thresholds {
		worsen(t.Result)
	}
	return result
}
