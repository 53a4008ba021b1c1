package report

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/metachaos/metachaos/results"
	"github.com/metachaos/metachaos/results/analysis"
)

const wantExport = `{
    "metrics": {
        "checks": {
            "fails": 1,
            "passes": 5,
            "value": 0.8333333333333334
        },
        "data_received": {
            "count": 4500,
            "rate": 2250
        },
        "hits": {
            "count": 6,
            "rate": 3,
            "thresholds": {
                "count<5": true
            }
        },
        "hits{lane:x}": {
            "count": 6,
            "rate": 3,
            "thresholds": {
                "count==2": true
            }
        },
        "iterations": {
            "count": 3,
            "rate": 1.5
        },
        "level": {
            "max": 7.25,
            "min": 7.25,
            "value": 7.25
        },
        "wait": {
            "avg": 200,
            "max": 300,
            "med": 200,
            "min": 100,
            "p(90)": 280,
            "p(95)": 290,
            "thresholds": {
                "max<300": true,
                "p(95)<200": true
            }
        }
    },
    "root_group": {
        "name": "",
        "path": "",
        "id": "d41d8cd98f00b204e9800998ecf8427e",
        "groups": {
            "inner": {
                "name": "inner",
                "path": "::inner",
                "id": "7a39326727e73ca478ad26238818e14c",
                "groups": {},
                "checks": {
                    "fresh": {
                        "name": "fresh",
                        "path": "::inner::fresh",
                        "id": "bb3c68fe288232db789c081bff8c2510",
                        "passes": 2,
                        "fails": 1
                    }
                }
            }
        },
        "checks": {
            "served": {
                "name": "served",
                "path": "::served",
                "id": "c4a5787fdaf83681107f0689103e1182",
                "passes": 3,
                "fails": 0
            }
        }
    }
}
`

func TestSummaryExport(t *testing.T) {
	var b strings.Builder
	if err := SummaryExport(&b, sampleSummary(t)); err != nil {
		t.Fatal(err)
	}
	if b.String() != wantExport {
		t.Errorf("got\n%s\nwant\n%s", b.String(), wantExport)
	}
}

func TestSummaryExportOfNothingAndOfInfinity(t *testing.T) {
	for _, s := range []analysis.Summary{{}, {Metrics: []analysis.MetricSummary{{Name: "x", Type: results.Gauge,
		Values: []analysis.Statistic{{Name: "value", Value: math.Inf(1)}}}}}} {
		var b strings.Builder
		if err := SummaryExport(&b, s); err != nil {
			t.Fatal(err)
		}
		var read struct {
			Root struct{ Groups map[string]any } `json:"root_group"`
		}
		if err := json.Unmarshal([]byte(b.String()), &read); err != nil || read.Root.Groups == nil {
			t.Errorf("%s: %v", b.String(), err)
		}
	}
}

func TestSummaryExportHoldsWhetherThresholdsWereCrossed(t *testing.T) {
	s := analysis.Summary{Metrics: []analysis.MetricSummary{{Name: "x", Type: results.Counter,
		Thresholds: []analysis.ThresholdResult{{Source: "count>1", OK: true}, {Source: "count>9"}}}}}
	var b strings.Builder
	if err := SummaryExport(&b, s); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"count>1": false`, `"count>9": true`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in %s", want, b.String())
		}
	}
}
