package k6http

import (
	"context"
	"crypto/tls"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// tracer notes the moments of one request, from whichever goroutine.
type tracer struct {
	start time.Time

	conn   atomic.Pointer[conn]
	reused atomic.Bool
	// Nanoseconds since start; 0 is not yet.
	got, wrote, first atomic.Int64
}

func (t *tracer) now() int64 { return max(1, int64(time.Since(t.start))) }

// watch returns a context that has a transport tell the tracer.
func (t *tracer) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			c := info.Conn
			if secure, ok := c.(*tls.Conn); ok {
				c = secure.NetConn()
			}
			own, _ := c.(*conn)
			t.connected(own, info.Reused)
		},
		WroteRequest:         func(httptrace.WroteRequestInfo) { t.wroteRequest() },
		GotFirstResponseByte: t.gotFirstByte,
	})
}

// connected notes that the request has a connection. With one that turned out
// to be dead it starts again.
func (t *tracer) connected(c *conn, reused bool) {
	t.got.Store(t.now())
	t.wrote.Store(0)
	t.conn.Store(c)
	t.reused.Store(reused)
}

func (t *tracer) wroteRequest() { t.wrote.Store(t.now()) }
func (t *tracer) gotFirstByte() { t.first.Store(t.now()) }

// timings are the parts of the time that a request took.
type timings struct {
	blocked, lookingUp, connecting, tlsHandshaking, sending, waiting, receiving time.Duration
}

// duration is the time from a connection to the end of the response.
func (t timings) duration() time.Duration { return t.sending + t.waiting + t.receiving }

// timings tells the parts of a request that ended that long after its start.
// A part that did not come to its end takes what is left.
func (t *tracer) timings(took time.Duration) timings {
	var out timings
	got := time.Duration(t.got.Load())
	if got == 0 {
		return out
	}
	wrote, first := time.Duration(t.wrote.Load()), time.Duration(t.first.Load())
	if first == 0 {
		first = took
	}
	if wrote == 0 || wrote > first { // the answer may come before all is written
		wrote = first
	}
	out.blocked = got
	if c := t.conn.Load(); c != nil && !t.reused.Load() {
		out.blocked = max(0, min(got, c.connecting.Sub(t.start)))
		out.lookingUp = c.lookedUp
		out.connecting = c.connected.Sub(c.connecting)
		if !c.secured.IsZero() {
			out.tlsHandshaking = c.secured.Sub(c.tlsHandshaking)
		}
	}
	out.sending, out.waiting, out.receiving = max(0, wrote-got), first-wrote, max(0, took-first)
	return out
}
