package analysis

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/metachaos/metachaos/results/stats"
)

func TestParseExpression(t *testing.T) {
	p := func(n float64) stats.Stat { return stats.Stat{Kind: stats.Percentile, Percent: n} }
	for s, want := range map[string]Expression{
		"count==6":         {stats.Stat{Kind: stats.Count}, "==", 6},
		"rate>0.0001":      {stats.Stat{Kind: stats.PerSecond}, ">", 0.0001},
		"value=== -2.5":    {stats.Stat{Kind: stats.Value}, "===", -2.5},
		" value  <=-2 ":    {stats.Stat{Kind: stats.Value}, "<=", -2},
		"p(99.9) < 1e3":    {p(99.9), "<", 1000},
		"med!=0":           {stats.Stat{Kind: stats.Med}, "!=", 0},
		"max >= +4":        {stats.Stat{Kind: stats.Max}, ">=", 4},
		"p(0)<9007199254.": {p(0), "<", 9007199254},
	} {
		got, err := ParseExpression(s)
		if err != nil || got != want {
			t.Errorf("ParseExpression(%q) = %v, %v, want %v", s, got, err, want)
		}
	}
}

func TestParseExpressionSaysWhatIsExpected(t *testing.T) {
	for s, want := range map[string]string{
		"p(95) is small": "want a statistic",
		"":               "want a statistic",
		"mean<5":         `unknown statistic "mean"`,
		"p(101)<5":       "p(0) to p(100)",
		"avg=5":          "unknown operator",
		"avg!5":          "unknown operator",
		"avg<five":       "want a number",
		"avg<":           "want a number",
		"avg<0x10":       "want a number",
		"avg<Inf":        "want a number",
		"avg<<5":         "want a number",
		"<5":             "unknown statistic",
	} {
		_, err := ParseExpression(s)
		var coded interface{ ExitCode() int }
		if err == nil || !strings.Contains(err.Error(), want) || !errors.As(err, &coded) || coded.ExitCode() != 104 {
			t.Errorf("ParseExpression(%q) = %v, want %q and exit status 104", s, err, want)
		}
	}
}

func TestHolds(t *testing.T) {
	for op, want := range map[string][3]bool{ // observed 1, 2, 3 against 2
		"<": {true, false, false}, "<=": {true, true, false}, ">": {false, false, true}, ">=": {false, true, true},
		"==": {false, true, false}, "===": {false, true, false}, "!=": {true, false, true},
	} {
		for i, w := range want {
			if got := (Expression{Op: op, Value: 2}).Holds(float64(i + 1)); got != w {
				t.Errorf("%d %s 2 = %v", i+1, op, got)
			}
		}
	}
}

func TestParseSelector(t *testing.T) {
	for s, want := range map[string]Selector{
		"checks":                                    {"checks", nil},
		"reqs{status:200}":                          {"reqs", map[string]string{"status": "200"}},
		"reqs{a:b, c : d}":                          {"reqs", map[string]string{"a": "b", "c": "d"}},
		"reqs{url:http://h:1/get?a=1}":              {"reqs", map[string]string{"url": "http://h:1/get?a=1"}},
		`reqs{"url":"http://h/a,b",x:'y'}`:          {"reqs", map[string]string{"url": "http://h/a,b", "x": "y"}},
		"group_duration{group:::slow}":              {"group_duration", map[string]string{"group": "::slow"}},
		"life{group:::a::b}":                        {"life", map[string]string{"group": "::a::b"}},
		`http_reqs{name:http://x/${},it:don't}`:     {"http_reqs", map[string]string{"name": "http://x/${}", "it": "don't"}},
		"http_req_duration{expected_response:true}": {"http_req_duration", map[string]string{"expected_response": "true"}},
	} {
		got, err := ParseSelector(s)
		if err != nil || got.Metric != want.Metric || !maps.Equal(got.Tags, want.Tags) {
			t.Errorf("ParseSelector(%q) = %v, %v, want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "m{", "m}", "m{}", "{a:b}", "m{group:}", "m{:v}", "m{a}", "m{a:b,}", "m{a:b}x", "m{a:1,a:2}"} {
		if got, err := ParseSelector(s); err == nil {
			t.Errorf("ParseSelector(%q) = %v, want an error", s, got)
		}
	}
}

func FuzzParseExpression(f *testing.F) {
	for _, s := range []string{"p(95)<200", "value=== -2.5", "rate>0.01", "count==0", "avg<=1e3", "med!=.5", "p(95) is small", "<", "p()<1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := ParseExpression(s)
		if err != nil {
			return
		}
		again, err := ParseExpression(e.String())
		if err != nil || again != e {
			t.Fatalf("%q reads as %v, whose text reads as %v, %v", s, e, again, err)
		}
	})
}

func FuzzParseSelector(f *testing.F) {
	for _, s := range []string{"m", "m{a:b}", `m{"a":'b',c:d}`, "m{a:::b}", "m{", "m{a:}", `m{a:"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		sel, err := ParseSelector(s)
		if err == nil && sel.Metric == "" {
			t.Fatalf("%q names no metric: %v", s, sel)
		}
	})
}
