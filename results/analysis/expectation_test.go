package analysis

import (
	"slices"
	"strings"
	"testing"

	"github.com/metachaos/metachaos/results"
)

func TestCatalogueIsSortedAndExplained(t *testing.T) {
	var names []string
	for _, m := range Catalogue() {
		names = append(names, m.Name)
		if m.Unit == "" || m.Doc == "" || strings.Contains(m.Doc, "\n") || m.Better != Lower && m.Better != Higher {
			t.Errorf("metric %+v is not explained", m)
		}
	}
	if !slices.IsSorted(names) {
		t.Errorf("the catalogue is not sorted, as LookupMetric needs it: %v", names)
	}
}

func TestParseExpectation(t *testing.T) {
	for _, c := range []struct{ metric, window, is, want string }{
		{"duplicates.rate", "", "value==0", "duplicates.rate whole value==0"},
		{"availability.goodput", "after  freeze", " ratio_to_baseline >= .9 ", "availability.goodput after freeze ratio_to_baseline>=0.9"},
		{"pulls.total{cause:ttl}", "baseline", "value<1e3", "pulls.total{cause:ttl} baseline value<1000"},
	} {
		e, err := ParseExpectation(results.Expectation{Metric: c.metric, Window: c.window, Is: c.is})
		if err != nil {
			t.Errorf("%v: %v", c, err)
			continue
		}
		info, err := LookupMetric(e.Metric)
		if got := e.name(info) + " " + e.Window.String() + " " + e.Condition.String(); err != nil || got != c.want {
			t.Errorf("parsed %q, %v, want %q", got, err, c.want)
		}
	}
	for _, c := range []struct{ metric, window, is, want string }{
		{"duplicate.rate", "whole", "value==0", `did you mean "duplicates.rate"?`},
		{"duplicates.rate{shard:s1}", "whole", "value==0", "has no labels"},
		{"pulls.total{code:x}", "whole", "value==0", "only the label cause"},
		{"pulls.total{", "whole", "value==0", "want name{tag:value"},
		{"duplicates.rate", "during", "value==0", `bad window "during"`},
		{"duplicates.rate", "whole ok", "value==0", "bad window"},
		{"duplicates.rate", "whole", "value", "want value or ratio_to_baseline"},
		{"duplicates.rate", "whole", "values==0", `unknown subject "values"`},
		{"duplicates.rate", "whole", "value===0", "unknown operator"},
		{"duplicates.rate", "whole", "value=0", "unknown operator"},
		{"duplicates.rate", "whole", "value==zero", `"zero" is no number`},
		{"duplicates.rate", "whole", "value<Inf", `"Inf" is no number`},
	} {
		_, err := ParseExpectation(results.Expectation{Metric: c.metric, Window: c.window, Is: c.is})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c, err, c.want)
		}
	}
}

func FuzzParseExpectation(f *testing.F) {
	f.Add("pulls.total{cause:ttl}", "after freeze", "ratio_to_baseline >= 0.9")
	f.Add("duplicates.rate", "whole", "value==0")
	f.Fuzz(func(t *testing.T, metric, window, is string) {
		e, err := ParseExpectation(results.Expectation{Metric: metric, Window: window, Is: is})
		if err != nil {
			return
		}
		again, err := ParseWindow(e.Window.String())
		if err != nil || again != e.Window {
			t.Errorf("window %q reads back as %+v, %v", e.Window, again, err)
		}
		condition, err := ParseCondition(e.Condition.String())
		if err != nil || condition != e.Condition {
			t.Errorf("condition %q reads back as %+v, %v", e.Condition, condition, err)
		}
	})
}
