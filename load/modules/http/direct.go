package k6http

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"
)

// direct sends plain HTTP/1.1 requests on connections of its own and waits for
// the answer on the goroutine that asks. net/http's Transport hands each
// request to one goroutine and each answer back from another, which costs as
// much as all the rest; formats and parsers are net/http's all the same. What
// takes more than a write and a read in turn is left to the Transport: TLS,
// proxies, large bodies, Expect and Upgrade. It is safe for concurrent use.
type direct struct {
	dialer  *dialer
	perHost int // idle connections kept for a host

	mu   sync.Mutex
	idle map[string][]*plainConn // by host:port; the last was used last
	busy map[*plainConn]struct{}
}

const (
	// maxDirectBody bounds bodies: a server may answer before it has read a
	// larger one, and would not be heard.
	maxDirectBody = 32 << 10
	maxIdle       = 90 * time.Second
)

func newDirect(d *dialer, perHost int) *direct {
	return &direct{dialer: d, perHost: perHost, idle: map[string][]*plainConn{}, busy: map[*plainConn]struct{}{}}
}

// takes reports whether a request can be sent directly. One that is malformed
// cannot: the Transport says what is wrong with it.
func (d *direct) takes(req *http.Request, size int) bool {
	if d == nil || req.URL.Scheme != "http" || req.URL.Host == "" || size > maxDirectBody || req.Method == http.MethodConnect ||
		!httpguts.ValidHeaderFieldName(req.Method) || !httpguts.ValidHostHeader(req.Host) || !isASCII(req.URL.Host) {
		return false
	}
	for name, values := range req.Header {
		if name == "Expect" || name == "Upgrade" || name == "Connection" || !httpguts.ValidHeaderFieldName(name) {
			return false
		}
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) {
				return false
			}
		}
	}
	return true
}

// send writes a request and reads the header of its response. The connection
// must be given back with free once the body is read.
func (d *direct) send(ctx context.Context, deadline time.Time, req *http.Request, t *tracer) (*http.Response, *plainConn, error) {
	for {
		c, err := d.take(ctx, deadline, hostPort(req.URL))
		if err != nil {
			return nil, nil, err
		}
		reused := !c.since.IsZero()
		t.connected(c.conn, reused)
		res, answered, err := c.exchange(req, t)
		if err == nil {
			return res, c, nil
		}
		d.free(c, false)
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, nil, errTimeout
		}
		// A server may close an idle connection at the moment it is used.
		if !reused || answered || !replayable(req) {
			return nil, nil, err
		}
		if req.GetBody != nil {
			req.Body, _ = req.GetBody() // never fails
		}
	}
}

// replayable reports whether a request does no harm when it is sent again.
func replayable(req *http.Request) bool {
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// take returns a connection to a server, an idle one if there is any that
// still stands.
func (d *direct) take(ctx context.Context, deadline time.Time, address string) (*plainConn, error) {
	for {
		c := d.pop(ctx, address)
		if c == nil {
			break
		}
		// In this order: a deadline that has passed would fail the look.
		if c.conn.SetDeadline(deadline) == nil && ctx.Err() == nil && time.Since(c.since) < maxIdle && c.stands() {
			return c, nil
		}
		d.free(c, false)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	dialCtx, cancel := context.WithDeadlineCause(ctx, deadline, errTimeout)
	defer cancel()
	own, err := d.dialer.connect(dialCtx, "tcp", address)
	if err != nil {
		if dialCtx.Err() != nil {
			err = context.Cause(dialCtx)
		}
		return nil, err
	}
	c := &plainConn{conn: own, address: address, done: ctx.Done(), room: -1}
	c.r, c.w = bufio.NewReader(c), bufio.NewWriter(own)
	if tcp, ok := own.Conn.(*net.TCPConn); ok {
		c.raw, _ = tcp.SyscallConn() // nil skips the look
	}
	d.mu.Lock()
	d.busy[c] = struct{}{}
	d.mu.Unlock()
	if err := own.SetDeadline(deadline); err != nil {
		d.free(c, false)
		return nil, err
	}
	if ctx.Err() != nil { // it may have ended before the connection was listed
		d.free(c, false)
		return nil, context.Cause(ctx)
	}
	return c, nil
}

func (d *direct) pop(ctx context.Context, address string) *plainConn {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := d.idle[address]
	if len(list) == 0 {
		return nil
	}
	c := list[len(list)-1]
	d.idle[address] = list[:len(list)-1]
	c.done = ctx.Done()
	d.busy[c] = struct{}{}
	return c
}

// free gives a connection back, or closes it if it cannot serve again.
func (d *direct) free(c *plainConn, reusable bool) {
	d.mu.Lock()
	delete(d.busy, c)
	list := d.idle[c.address]
	reusable = reusable && len(list) < d.perHost && c.r.Buffered() == 0
	if reusable {
		c.since, c.done = time.Now(), nil
		d.idle[c.address] = append(list, c)
	}
	d.mu.Unlock()
	if !reusable {
		c.Close()
	}
}

// closeIdle closes the connections that nobody uses.
func (d *direct) closeIdle() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for address, list := range d.idle {
		for _, c := range list {
			c.Close()
		}
		delete(d.idle, address)
	}
}

// interrupt has the requests of a context that ended fail.
func (d *direct) interrupt(done <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.busy {
		if c.done == done {
			_ = c.SetDeadline(time.Unix(1, 0)) // fails only on a closed connection
		}
	}
}

// isASCII is false for the hosts whose names have to be encoded first.
func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// hostPort returns the address to dial for a URL.
func hostPort(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	return net.JoinHostPort(u.Hostname(), "80")
}
