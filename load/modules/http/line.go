package k6http

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"time"

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
	transport *http.Transport
	agent     http.Header // the headers of a request that sets none
	log       *slog.Logger

	// watched is the context that ends with the idle connections; see
	// closeWith.
	watched context.Context
}

func newLine(c *common, vu int, log *slog.Logger) *line {
	l := &line{common: c, traffic: &traffic{}, log: log, agent: http.Header{}}
	l.agent.Set("User-Agent", c.options.UserAgent)
	d := &dialer{common: c, from: localIP(c.options.LocalIPs, vu), traffic: l.traffic}
	l.transport = &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         d.dial,
		DialTLSContext:      d.dialTLS,
		TLSClientConfig:     c.securer.config(""), // of connections through a proxy
		DisableCompression:  true,
		DisableKeepAlives:   c.options.NoConnectionReuse,
		MaxIdleConns:        c.options.Batch,
		MaxIdleConnsPerHost: max(1, c.options.BatchPerHost),
		IdleConnTimeout:     90 * time.Second,
	}
	if _, err := http2.ConfigureTransports(l.transport); err != nil {
		panic(fmt.Sprintf("configure HTTP/2: %v", err)) // only fails for a transport that has it
	}
	return l
}

// closeWith has idle connections closed when ctx ends: nobody else tells that
// a VU is through. Iterations in a row share their context.
func (l *line) closeWith(ctx context.Context) {
	if l.watched != ctx {
		l.watched = ctx
		context.AfterFunc(ctx, l.transport.CloseIdleConnections)
	}
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
