package k6http

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"golang.org/x/net/http/httpproxy"
	"golang.org/x/net/http2"

	"github.com/metachaos/metachaos/load/script"
)

// common is what the VUs of a run share. It is safe for concurrent use.
type common struct {
	options  *options
	resolver *resolver
	securer  *securer
	limiter  *limiter // nil without the option rps
}

func newCommon(o *script.Options) (*common, error) {
	options, err := readOptions(o)
	if err != nil {
		return nil, err
	}
	s, err := newSecurer(options)
	if err != nil {
		return nil, err
	}
	return &common{options: options, resolver: newResolver(options.DNS), securer: s, limiter: newLimiter(options.RPS)}, nil
}

func (c *common) tlsFor(host string) *tls.Config { return c.securer.config(host) }

// line is what one VU sends its requests through. It is safe for concurrent
// use.
type line struct {
	*common
	traffic   *traffic
	direct    *direct // nil when there is a proxy for plain HTTP
	transport *http.Transport
	agent     http.Header // the headers of a request that sets none
	log       *slog.Logger

	// watched is of the context whose end closes the idle connections; see
	// closeWith.
	watched <-chan struct{}
}

func newLine(c *common, vu int, log *slog.Logger) *line {
	l := &line{common: c, traffic: &traffic{}, log: log, agent: http.Header{}}
	l.agent.Set("User-Agent", c.options.UserAgent)
	d := &dialer{common: c, from: localIP(c.options.LocalIPs, vu), traffic: l.traffic}
	if httpproxy.FromEnvironment().HTTPProxy == "" {
		l.direct = newDirect(d, max(1, c.options.BatchPerHost))
	}
	l.transport = &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         d.dial,
		DialTLSContext:      d.dialTLS,
		TLSClientConfig:     c.securer.config(""), // of connections through a proxy
		DisableCompression:  true,
		DisableKeepAlives:   c.options.NoConnectionReuse,
		MaxIdleConns:        c.options.Batch,
		MaxIdleConnsPerHost: max(1, c.options.BatchPerHost),
		IdleConnTimeout:     maxIdle,
	}
	//nolint:staticcheck // only this transport returns the typed errors that classifyHTTP2 tells apart
	if _, err := http2.ConfigureTransports(l.transport); err != nil {
		panic(fmt.Sprintf("configure HTTP/2: %v", err)) // only fails for a transport that has it
	}
	return l
}

// closeWith has requests under way interrupted and idle connections closed when
// ctx ends: nobody else tells that a VU is through. Iterations in a row share
// their context.
func (l *line) closeWith(ctx context.Context) {
	done := ctx.Done()
	if l.watched == done {
		return
	}
	l.watched = done
	context.AfterFunc(ctx, func() {
		if l.direct != nil {
			l.direct.interrupt(done)
		}
		l.closeIdle()
	})
}

// closeIdle closes connections that nobody uses.
func (l *line) closeIdle() {
	if l.direct != nil {
		l.direct.closeIdle()
	}
	l.transport.CloseIdleConnections()
}

// held is what a response under way holds until its body is read.
type held struct {
	conn   *plainConn         // of a direct request
	cancel context.CancelFunc // of another
}

// release gives it back; the connection can serve again if the body was read
// to its end.
func (l *line) release(h held, reusable bool) {
	if h.conn != nil {
		l.direct.free(h.conn, reusable)
	}
	if h.cancel != nil {
		h.cancel()
	}
}

// send sends one request. What it holds must be released, also with an error.
func (l *line) send(ctx context.Context, deadline time.Time, req *http.Request, size int, t *tracer) (*http.Response, held, error) {
	if l.direct.takes(req, size) {
		res, c, err := l.direct.send(ctx, deadline, req, t)
		return res, held{conn: c}, err
	}
	ctx, cancel := context.WithDeadlineCause(ctx, deadline, errTimeout)
	res, err := l.transport.RoundTrip(req.WithContext(t.watch(context.WithValue(ctx, requestDone{}, ctx.Done()))))
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return res, held{cancel: cancel}, err
}

// limiter spaces requests of all VUs evenly in time.
type limiter struct {
	every time.Duration
	slots chan time.Time // holds the instant of the next free slot
}

func newLimiter(perSecond float64) *limiter {
	if perSecond <= 0 {
		return nil
	}
	l := &limiter{every: time.Duration(float64(time.Second) / perSecond), slots: make(chan time.Time, 1)}
	l.slots <- time.Time{}
	return l
}

// wait blocks until the next free slot, or until ctx ends. A nil limiter has
// slots at all times.
func (l *limiter) wait(ctx context.Context) error {
	if l == nil {
		return nil
	}
	slot, now := <-l.slots, time.Now()
	if slot.Before(now) {
		slot = now
	}
	l.slots <- slot.Add(l.every)
	t := time.NewTimer(slot.Sub(now))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
