package k6cases

// want is expect.json.
type want struct {
	Area    string                     `json:"area"`
	Desc    string                     `json:"desc"`
	Exit    any                        `json:"exit"`  // a number, or {"min","max"}, or {"not":N}
	MaxS    float64                    `json:"max_s"` // generous wall-clock limit, seconds
	MinS    float64                    `json:"min_s"` // lower limit, seconds
	Metrics map[string]map[string]any  `json:"metrics"`
	Absent  []string                   `json:"absent_metrics"`
	Thr     map[string]map[string]bool `json:"thresholds"` // true: it held
	Checks  map[string][2]float64      `json:"checks"`     // "::group::name" -> [passes, fails]
	Groups  []string                   `json:"groups"`     // paths that must be in the tree

	StdoutHas   []string       `json:"stdout_has"`
	StdoutNot   []string       `json:"stdout_not"`
	StderrHas   []string       `json:"stderr_has"`
	StderrNot   []string       `json:"stderr_not"`
	StderrCount map[string]any `json:"stderr_count"` // substring -> number of occurrences
	StderrAny   [][]string     `json:"stderr_any"`   // of each list one substring must occur
	StderrOrder []string       `json:"stderr_order"` // must occur in this order
	StdoutOrder []string       `json:"stdout_order"`
	InterruptS  float64        `json:"interrupt_s"` // send an interrupt (SIGINT) after this many seconds
	NoSummary   bool           `json:"no_summary"`  // the summary export must not be written

	Files map[string]fileWant `json:"files"`
}

// fileWant says what a file created by the run must hold.
type fileWant struct {
	Absent bool           `json:"absent"`
	Gzip   bool           `json:"gzip"`
	Text   *string        `json:"text"` // exact contents
	Has    []string       `json:"has"`
	Not    []string       `json:"not"`
	JSON   map[string]any `json:"json"`   // dotted path -> value (number ranges allowed)
	Lines  []lineWant     `json:"lines"`  // NDJSON (or CSV, as objects by header name)
	CSV    bool           `json:"csv"`    // read Lines from a CSV file
	Header []string       `json:"header"` // CSV columns that must be present
}

// lineWant counts the lines that match every entry of Where.
type lineWant struct {
	Where  map[string]any `json:"where"` // dotted path -> value; null: absent or null
	Count  any            `json:"count"`
	Sum    any            `json:"sum"` // of data.value or metric_value over them
	HasKey []string       `json:"has_key"`
	NoKey  []string       `json:"no_key"`
}

// timed reports whether the case looks at the clock, so that others beside it
// could disturb it.
func (w *want) timed() bool {
	if w.MinS > 0 || w.InterruptS > 0 || w.MaxS < 10 || w.Area == "executors" || w.Area == "timers/async" {
		return true
	}
	for _, keys := range w.Metrics {
		for _, v := range keys {
			if _, isRange := v.(map[string]any); isRange {
				return true
			}
		}
	}
	return false
}
