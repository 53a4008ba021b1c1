package output

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/metachaos/metachaos/results"
	"github.com/metachaos/metachaos/results/stats"
)

// remoteWrite sends the state of each series to a server of Prometheus'
// remote write, at intervals. What is sent is cumulative, so a request that
// fails costs resolution and no data: the next one says it all.
type remoteWrite struct {
	env        Env
	remote     remote
	every      time.Duration
	trendStats []stats.Stat
	histograms bool
	markStale  bool

	mu  sync.Mutex // guards set and what it holds
	set *seriesSet

	stop    context.CancelFunc // of the sending goroutine
	done    chan struct{}
	failing bool // since the last request that went well; of the sending goroutine
}

var _ Output = (*remoteWrite)(nil)

const (
	// seriesPerRequest keeps requests within what servers accept.
	seriesPerRequest = 2000
	// requestLimit bounds one request in the middle of a run.
	requestLimit = 10 * time.Second
	// lastLimit bounds all attempts to send the final state.
	lastLimit = 10 * time.Second
)

// openRemoteWrite makes the output for Prometheus. The argument, when there is
// one, is the URL.
func openRemoteWrite(argument string, env Env) (Output, error) {
	s := &settings{env: env, prefix: "PROMETHEUS_RW_"}
	trendStats, err := parseTrendStats(s.text("TREND_STATS", "p(99)"))
	if err != nil {
		return nil, fmt.Errorf("K6_PROMETHEUS_RW_TREND_STATS: %w", err)
	}
	client, err := openHTTPRemote(s, argument, env.Version)
	if err != nil {
		return nil, err
	}
	o := &remoteWrite{env: env, remote: client, every: s.duration("PUSH_INTERVAL", 5*time.Second), trendStats: trendStats,
		histograms: s.flag("TREND_AS_NATIVE_HISTOGRAM", false), markStale: s.flag("STALE_MARKERS", false),
		done: make(chan struct{})}
	return o, s.err
}

func parseTrendStats(text string) ([]stats.Stat, error) {
	var all []stats.Stat
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		if name == string(statSum) {
			all = append(all, stats.Stat{Kind: statSum})
			continue
		}
		st, err := stats.ParseStat(name)
		if err != nil {
			return nil, err
		}
		if _, ok := (&stats.Trend{}).Stat(st, 0); !ok {
			return nil, fmt.Errorf("a trend has no statistic %q: want count, sum, avg, min, med, max or p(N)", name)
		}
		all = append(all, st)
	}
	return all, nil
}

// Start begins to send; see [Output].
func (o *remoteWrite) Start(ctx context.Context, run Run) error {
	o.set = newSeriesSet(run, o.trendStats, o.histograms)
	ctx, o.stop = context.WithCancel(context.WithoutCancel(ctx))
	go o.push(ctx)
	return nil
}

// Record aggregates samples; see [Output].
func (o *remoteWrite) Record(samples ...results.Sample) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range samples {
		o.set.add(&samples[i])
	}
}

func (o *remoteWrite) push(ctx context.Context) {
	defer close(o.done)
	tick := time.NewTicker(o.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			o.pushOnce(ctx)
		}
	}
}

// pushOnce sends what was touched. Series that could not be sent stay touched.
func (o *remoteWrite) pushOnce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	requests, of := o.requests(time.Now())
	for _, request := range requests {
		if err := o.remote.send(ctx, request); err != nil {
			if !o.failing && !errors.Is(context.Cause(ctx), context.Canceled) { // a stop is no failure
				o.failing = true
				o.env.Logger.Warn(fmt.Sprintf("output prometheus-rw: %v; the totals will be sent again", err))
			}
			o.touch(of)
			return
		}
	}
	o.failing = false
}

// requests encodes the touched series and takes them for sent.
func (o *remoteWrite) requests(now time.Time) (requests [][]byte, of []*rwSeries) {
	o.mu.Lock()
	defer o.mu.Unlock()
	points, of := o.set.points(false)
	for _, s := range of {
		s.touched = false
	}
	return encodeRequests(points, now), of
}

func (o *remoteWrite) touch(all []*rwSeries) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range all {
		s.touched = true
	}
}

func encodeRequests(points []point, now time.Time) [][]byte {
	var requests [][]byte
	for some := range slices.Chunk(points, seriesPerRequest) {
		requests = append(requests, encodeRequest(some, now.UnixMilli()))
	}
	return requests
}

// Stop sends the final state, again and again for a while until it is taken;
// see [Output].
func (o *remoteWrite) Stop(ctx context.Context) error {
	o.stop()
	<-o.done
	defer o.remote.close()
	ctx, cancel := context.WithTimeout(ctx, lastLimit)
	defer cancel()
	now := time.Now()
	requests, _ := o.requests(now)
	if o.markStale {
		requests = append(requests, o.staleRequests(now.Add(time.Millisecond))...)
	}
	for _, request := range requests {
		if err := persist(ctx, o.remote, request); err != nil {
			return fmt.Errorf("send the last values to prometheus-rw: %w", err)
		}
	}
	return nil
}

// staleRequests end every series, so that the last values do not stay on
// display after the run.
func (o *remoteWrite) staleRequests(now time.Time) [][]byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	points, _ := o.set.points(true)
	for i := range points {
		points[i].value, points[i].histogram = staleNaN(), nil
	}
	return encodeRequests(points, now)
}
