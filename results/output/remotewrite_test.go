package output

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bufbuild/protocompile"
	"github.com/klauspost/compress/snappy"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/metachaos/metachaos/results"
)

// receiver is a server of remote write that decodes with the public schema.
type receiver struct {
	schema protoreflect.MessageDescriptor
	answer func(n int) int // status of the n-th request, from 1

	mu       sync.Mutex
	requests int
	headers  http.Header
	series   map[string]rwSeen // the last of each
	arrived  chan struct{}     // holds a token after a request
}

type rwSeen struct {
	Labels     []struct{ Name, Value string }
	Samples    []struct{ Value any }
	Histograms []rwHistogram
}

type rwHistogram struct {
	CountInt, ZeroCountInt         string
	Sum                            float64
	Schema                         int
	NegativeSpans, PositiveSpans   []struct{ Offset, Length int }
	NegativeDeltas, PositiveDeltas []string
}

func startReceiver(t *testing.T, answer func(n int) int) (*receiver, string) {
	t.Helper()
	compiler := protocompile.Compiler{Resolver: &protocompile.SourceResolver{ImportPaths: []string{"testdata"}}}
	files, err := compiler.Compile(t.Context(), "remote.proto")
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{schema: files[0].Messages().ByName("WriteRequest"), answer: answer, series: map[string]rwSeen{}, arrived: make(chan struct{}, 1)}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	return r, server.URL + "/api/v1/write"
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	r.headers = req.Header.Clone()
	if status := r.answer(r.requests); status != http.StatusOK {
		http.Error(w, "not now", status)
	} else if err := r.take(req.Body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
	select {
	case r.arrived <- struct{}{}:
	default:
	}
}

func (r *receiver) take(body io.Reader) error {
	packed, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	plain, err := snappy.Decode(nil, packed)
	if err != nil {
		return err
	}
	message := dynamicpb.NewMessage(r.schema)
	if err := proto.Unmarshal(plain, message); err != nil {
		return err
	}
	if len(message.GetUnknown()) > 0 {
		return fmt.Errorf("unknown fields")
	}
	text, err := protojson.Marshal(message)
	if err != nil {
		return err
	}
	var request struct{ Timeseries []rwSeen }
	if err := json.Unmarshal(text, &request); err != nil {
		return err
	}
	for _, s := range request.Timeseries {
		var names []string
		key := ""
		for _, l := range s.Labels {
			names = append(names, l.Name)
			key += l.Name + "=" + l.Value + " "
		}
		if !slices.IsSorted(names) {
			return fmt.Errorf("labels are not sorted: %v", names)
		}
		r.series[strings.TrimSpace(key)] = s
	}
	return nil
}

func always(status int) func(int) int { return func(int) int { return status } }

func startRemoteWrite(t *testing.T, url string, env map[string]string, f fixture) Output {
	t.Helper()
	all := map[string]string{"K6_PROMETHEUS_RW_SERVER_URL": url, "K6_PROMETHEUS_RW_PUSH_INTERVAL": "1h"}
	for name, value := range env {
		all[name] = value
	}
	o, err := Open("experimental-prometheus-rw", Env{Lookup: lookup(all), Version: "1.2"})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Start(t.Context(), f.run); err != nil {
		t.Fatal(err)
	}
	return o
}

func recordAll(o Output, f fixture, tags *results.Tags) {
	for i := range 100 {
		o.Record(results.Sample{Metric: f.lat, Tags: tags, Value: float64(i + 1)})
	}
	o.Record(
		results.Sample{At: 1, Metric: f.count, Tags: tags, Value: 3}, results.Sample{At: 2, Metric: f.count, Tags: tags, Value: 4},
		results.Sample{At: 2, Metric: f.level, Tags: tags, Value: 9}, results.Sample{At: 1, Metric: f.level, Tags: tags, Value: 5},
		results.Sample{Metric: f.share, Tags: tags, Value: 1}, results.Sample{Metric: f.share, Tags: tags, Value: 0},
		results.Sample{Metric: f.share, Tags: tags, Value: math.NaN()})
}

func TestRemoteWriteSendsTotals(t *testing.T) {
	f := newFixture()
	r, url := startReceiver(t, always(http.StatusOK))
	o := startRemoteWrite(t, url, map[string]string{"K6_PROMETHEUS_RW_TREND_STATS": "p(95), min,max,avg,count,sum,p(99.9)",
		"K6_PROMETHEUS_RW_HTTP_HEADERS": "X-Scope:one", "K6_PROMETHEUS_RW_USERNAME": "u", "K6_PROMETHEUS_RW_PASSWORD": "p"}, f)
	tags := f.tags.With("odd-name", "v").With("1st", "w")
	recordAll(o, f, tags)
	recordAll(o, f, tags.With("vu", "8")) // the same series: vu is metadata
	if err := o.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	const end = `_1st=w a=b, "c" odd_name=v scenario=default url=http://h/?a=1&b=2 z=y`
	for name, want := range map[string]float64{
		"k6_mine_total": 14, "k6_level": 9, "k6_share_rate": 0.5, "k6_lat_p95": 0.09505, "k6_lat_min": 0.001, "k6_lat_max": 0.1,
		"k6_lat_avg": 0.0505, "k6_lat_count": 200, "k6_lat_sum": 10.1, "k6_lat_p99_9": 0.1,
	} {
		key := "_1st=w __name__=" + name + strings.TrimPrefix(end, "_1st=w")
		seen, ok := r.series[key]
		if !ok || len(seen.Samples) != 1 {
			t.Fatalf("no series %s among %v", key, r.series)
		}
		if got, _ := seen.Samples[0].Value.(float64); math.Abs(got-want) > 1e-4 {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	if len(r.series) != 10 {
		t.Errorf("%d series, want 10", len(r.series))
	}
	for name, want := range map[string]string{"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf", "X-Scope": "one",
		"X-Prometheus-Remote-Write-Version": "0.1.0", "User-Agent": "metachaos/1.2", "Authorization": "Basic dTpw"} {
		if got := r.headers.Get(name); got != want {
			t.Errorf("header %s = %q, want %q", name, got, want)
		}
	}
}

func TestRemoteWriteSendsNativeHistograms(t *testing.T) {
	f := newFixture()
	r, url := startReceiver(t, always(http.StatusOK))
	o := startRemoteWrite(t, url, map[string]string{"K6_PROMETHEUS_RW_TREND_AS_NATIVE_HISTOGRAM": "true"}, f)
	for _, ms := range []float64{1000, 1000, 999.999, 2000, -1000, 0, math.NaN()} {
		o.Record(results.Sample{Metric: f.lat, Value: ms})
	}
	if err := o.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen := r.series["__name__=k6_lat_seconds"]
	if len(seen.Histograms) != 1 {
		t.Fatalf("no histogram among %v", r.series)
	}
	got := fmt.Sprintf("%+v", seen.Histograms[0])
	want := "{CountInt:6 ZeroCountInt:1 Sum:3.999999 Schema:3 NegativeSpans:[{Offset:0 Length:1}] " +
		"PositiveSpans:[{Offset:0 Length:1} {Offset:7 Length:1}] NegativeDeltas:[1] PositiveDeltas:[3 -2]}"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestRemoteWritePushesAtIntervalsAndOutlivesFailures(t *testing.T) {
	f := newFixture()
	r, url := startReceiver(t, func(n int) int {
		if n <= 2 {
			return http.StatusServiceUnavailable
		}
		return http.StatusOK
	})
	o := startRemoteWrite(t, url, map[string]string{"K6_PROMETHEUS_RW_PUSH_INTERVAL": "20ms"}, f)
	o.Record(results.Sample{Metric: f.count, Value: 5})
	deadline := time.After(10 * time.Second)
	for {
		select {
		case <-r.arrived:
		case <-deadline:
			t.Fatal("the total did not arrive")
		}
		r.mu.Lock()
		_, ok := r.series["__name__=k6_mine_total"]
		r.mu.Unlock()
		if ok {
			break
		}
	}
	if err := o.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestRemoteWriteTellsWhatTheServerRefuses(t *testing.T) {
	f := newFixture()
	_, url := startReceiver(t, always(http.StatusUnauthorized))
	o := startRemoteWrite(t, url, nil, f)
	o.Record(results.Sample{Metric: f.count, Value: 5})
	if err := o.Stop(t.Context()); err == nil || !strings.Contains(err.Error(), "401") || !strings.Contains(err.Error(), "not now") {
		t.Errorf("Stop = %v, want the answer of the server", err)
	}
}

func TestRemoteWriteRepeatsTheLastRequest(t *testing.T) {
	f := newFixture()
	r, url := startReceiver(t, func(n int) int {
		if n == 1 {
			return http.StatusTooManyRequests
		}
		return http.StatusOK
	})
	o := startRemoteWrite(t, url, nil, f)
	o.Record(results.Sample{Metric: f.count, Value: 5})
	if err := o.Stop(t.Context()); err != nil || r.requests != 2 {
		t.Errorf("Stop = %v after %d requests, want none after 2", err, r.requests)
	}
	// A server that stays away: the caller's patience decides.
	_, url = startReceiver(t, always(http.StatusInternalServerError))
	o = startRemoteWrite(t, url, nil, f)
	o.Record(results.Sample{Metric: f.count, Value: 5})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := o.Stop(ctx); err == nil {
		t.Error("Stop says that the last values were sent")
	}
}

func TestRemoteWriteEndsSeriesWithStaleMarkers(t *testing.T) {
	f := newFixture()
	r, url := startReceiver(t, always(http.StatusOK))
	o := startRemoteWrite(t, url, map[string]string{"K6_PROMETHEUS_RW_STALE_MARKERS": "true"}, f)
	o.Record(results.Sample{Metric: f.count, Value: 5})
	if err := o.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.series["__name__=k6_mine_total"].Samples[0].Value; got != "NaN" {
		t.Errorf("the last value is %v, want the marker", got)
	}
	if math.Float64bits(staleNaN()) != 0x7ff0000000000002 {
		t.Error("the marker is another NaN")
	}
}

func TestRemoteWriteSplitsLargeRequests(t *testing.T) {
	f := newFixture()
	r, url := startReceiver(t, always(http.StatusOK))
	o := startRemoteWrite(t, url, nil, f)
	reg := results.NewRegistry()
	for i := range seriesPerRequest + 1 {
		o.Record(results.Sample{Metric: f.count, Tags: reg.Tags(map[string]string{"i": fmt.Sprint(i)}), Value: 1})
	}
	if err := o.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.requests != 2 || len(r.series) != seriesPerRequest+1 {
		t.Errorf("%d series in %d requests", len(r.series), r.requests)
	}
}

func TestBucketsHoldTheirValues(t *testing.T) {
	for _, v := range []float64{1e-9, 0.001, 0.5, 1, 1.0001, 2, 3, 1e6, math.MaxFloat64, math.Inf(1)} {
		i := float64(bucketOf(v))
		low, high := math.Exp2((i-1)/(1<<histogramSchema)), math.Exp2(i/(1<<histogramSchema))
		if v = math.Min(v, math.MaxFloat64); !(low < v*(1+1e-12) && v <= high*(1+1e-12)) {
			t.Errorf("%v is in the bucket from %v to %v", v, low, high)
		}
	}
}
