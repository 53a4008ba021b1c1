package output

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/metachaos/metachaos/results"
)

func TestJSONLines(t *testing.T) {
	f := newFixture()
	got := written(t, "json=x", Env{}, f,
		results.Sample{At: 1500 * time.Millisecond, Metric: f.count, Tags: f.tags, Value: 3},
		results.Sample{At: 2 * time.Second, Metric: f.count, Value: 1e6},
		results.Sample{At: 2 * time.Second, Metric: f.lat, Value: 0.25},
		results.Sample{Metric: f.lat, Value: math.NaN()}, results.Sample{Metric: f.lat, Value: math.Inf(-1)},
		results.Sample{Metric: f.lat, Value: 1e-9})
	want := `{"type":"Metric","data":{"name":"mine","type":"counter","contains":"default","thresholds":["count>0",{"threshold":"rate<9","abortOnFail":true,"delayAbortEval":"2s"}],"submetrics":[{"name":"mine{a:b}","suffix":"a:b","tags":{"a":"b"}}]},"metric":"mine"}
{"metric":"mine","type":"Point","data":{"time":"2026-03-04T05:06:08.5Z","value":3,"tags":{"a":"b, \"c\"","group":"","scenario":"default","url":"http://h/?a=1&b=2","z":"y"},"metadata":{"vu":"7"}}}
{"metric":"mine","type":"Point","data":{"time":"2026-03-04T05:06:09Z","value":1000000,"tags":{}}}
{"type":"Metric","data":{"name":"lat","type":"trend","contains":"time","thresholds":[],"submetrics":null},"metric":"lat"}
{"metric":"lat","type":"Point","data":{"time":"2026-03-04T05:06:09Z","value":0.25,"tags":{}}}
{"metric":"lat","type":"Point","data":{"time":"2026-03-04T05:06:07Z","value":null,"tags":{}}}
{"metric":"lat","type":"Point","data":{"time":"2026-03-04T05:06:07Z","value":null,"tags":{}}}
{"metric":"lat","type":"Point","data":{"time":"2026-03-04T05:06:07Z","value":1e-09,"tags":{}}}
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for line := range strings.Lines(got) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
}

func TestCSVRows(t *testing.T) {
	f := newFixture()
	samples := []results.Sample{
		{At: 1500 * time.Millisecond, Metric: f.count, Tags: f.tags, Value: 3},
		{Metric: f.lat, Value: math.NaN()},
	}
	for _, c := range []struct {
		spec string
		env  map[string]string
		want string
	}{
		{"csv", nil, `metric_name,timestamp,metric_value,group,scenario,url,vu,extra_tags,metadata
mine,1772600768,3.000000,,default,http://h/?a=1&b=2,7,"a=b, ""c""&z=y",vu=7
lat,1772600767,NaN,,,,,,
`},
		// the setting in the argument wins over the environment
		{"csv=fileName=x,timeFormat=rfc3339_nano", map[string]string{"K6_CSV_TIME_FORMAT": "unix_milli"},
			`metric_name,timestamp,metric_value,group,scenario,url,vu,extra_tags,metadata
mine,2026-03-04T05:06:08.5Z,3.000000,,default,http://h/?a=1&b=2,7,"a=b, ""c""&z=y",vu=7
lat,2026-03-04T05:06:07Z,NaN,,,,,,
`},
		{"csv=x", map[string]string{"K6_CSV_TIME_FORMAT": "rfc3339", "METACHAOS_CSV_TIME_FORMAT": "unix_milli"},
			`metric_name,timestamp,metric_value,group,scenario,url,vu,extra_tags,metadata
mine,1772600768500,3.000000,,default,http://h/?a=1&b=2,7,"a=b, ""c""&z=y",vu=7
lat,1772600767000,NaN,,,,,,
`},
	} {
		if got := written(t, c.spec, Env{Lookup: lookup(c.env)}, f, samples...); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.spec, got, c.want)
		}
	}
}

func lookup(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	}
}

func TestGzip(t *testing.T) {
	f := newFixture()
	for _, spec := range []string{"json=a.ndjson.gz", "csv=a.csv.gz"} {
		text := written(t, spec, Env{}, f, results.Sample{Metric: f.count, Value: 1})
		z, err := gzip.NewReader(strings.NewReader(text))
		if err != nil {
			t.Fatalf("%s: %v", spec, err)
		}
		plain, err := io.ReadAll(z)
		if err != nil || !strings.Contains(string(plain), "mine") {
			t.Errorf("%s holds %q, %v", spec, plain, err)
		}
	}
}
