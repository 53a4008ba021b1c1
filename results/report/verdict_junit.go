package report

import (
	"encoding/xml"
	"fmt"
	"io"

	"github.com/metachaos/metachaos/results/analysis"
)

// JUnit writes the verdict as junit.xml keeps it. Assumptions, expectations,
// thresholds and the reversal of each fault are test cases. What failed is a
// failure; what is inconclusive is an error, since CI would show a skipped
// test as green.
func JUnit(w io.Writer, v analysis.Verdict) error {
	suite := junitSuite{Name: v.Name, Time: fmt.Sprintf("%.3f", (v.LoadEnd - v.LoadStart).Seconds())}
	for _, a := range v.Assumptions {
		result := analysis.Pass
		if !a.Held {
			result = analysis.Inconclusive
		}
		suite.add("assumption", a.Name, result, a.Detail)
	}
	for _, f := range v.Findings {
		suite.add("expectation", f.Metric+" "+expected(f), f.Result, lines("value: "+joined("; ", measured(f)...), f.Detail, place(f.Evidence)))
	}
	for _, t := range v.Thresholds {
		suite.add("threshold", t.Metric+" "+t.Expression, t.Result, lines("value: "+observed(t), t.Detail))
	}
	for _, f := range v.Faults {
		result := analysis.Pass
		if !clean(f) {
			result = analysis.Fail
		}
		suite.add("fault", f.ID+" leaves nothing behind", result, lines("state: "+string(f.State), f.Undoing, undo(f)))
	}
	all := junitSuites{Tests: suite.Tests, Failures: suite.Failures, Errors: suite.Errors, Suites: []junitSuite{suite}}
	b, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("encode verdict: %w", err)
	}
	if _, err := fmt.Fprintf(w, "%s%s\n", xml.Header, b); err != nil {
		return fmt.Errorf("write verdict: %w", err)
	}
	return nil
}

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitProblem `xml:"failure"`
	Error   *junitProblem `xml:"error"`
}

type junitProblem struct {
	Type    string `xml:"type,attr"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

func (s *junitSuite) add(kind, name string, r analysis.Result, detail string) {
	c := junitCase{Class: s.Name + "." + kind, Name: name, Time: "0"}
	problem := &junitProblem{Type: string(r), Message: name, Text: detail}
	switch r {
	case analysis.Fail:
		c.Failure = problem
		s.Failures++
	case analysis.Inconclusive:
		c.Error = problem
		s.Errors++
	}
	s.Tests++
	s.Cases = append(s.Cases, c)
}
