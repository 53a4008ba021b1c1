package k6ws

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/websocket"
	"github.com/grafana/sobek"

	"github.com/metachaos/metachaos/load/modules/wire"
	"github.com/metachaos/metachaos/load/script"
)

func blockingExports(c *client) script.Exports {
	return script.Exports{Named: map[string]any{"connect": c.connect}}
}

// connect opens a socket, hands it to the script, and returns when it is
// closed: connect(url, params?, function (socket) { … }).
func (c *client) connect(call sobek.FunctionCall) sobek.Value {
	options := c.ready("connect")
	address := call.Argument(0).String()
	paramsValue, body := call.Argument(1), call.Argument(2)
	if len(call.Arguments) == 2 {
		paramsValue, body = sobek.Undefined(), call.Argument(1)
	}
	start, ok := sobek.AssertFunction(body)
	if !ok {
		wire.Throw(c.host, "connect: want a function that takes the socket as last argument, got %s", body)
	}
	p, err := readParams(paramsValue)
	if err == nil {
		err = checkURL(address)
	}
	if err != nil {
		wire.Throw(c.host, "connect: %w", err)
	}
	d := &dialling{address: address, params: p, dialer: &wire.Dialer{Options: *options}, jar: wire.Jar(c.host)}
	ctx := c.host.Context()
	began := time.Now()
	conn, shake, err := d.dial(ctx)
	if err != nil {
		return c.refused(d, shake, err)
	}
	defer conn.drop()
	conn.tags = wire.Tags(c.host, c.host.Tags(), p.tags, d.systemTags(shake))
	c.host.Sample(c.metrics.sessions, 1, conn.tags)
	c.host.Sample(c.metrics.connecting, milliseconds(conn.opened.Sub(began)), conn.tags)
	s := &socket{client: c, conn: conn, handlers: map[string][]sobek.Callable{}, timers: map[int64]*socketTimer{}}
	defer func() {
		c.host.Sample(c.metrics.duration, milliseconds(time.Since(conn.opened)), conn.tags)
		wire.Traffic(c.host, conn.dialer, conn.tags)
	}()
	s.play(ctx, start)
	return c.response(d, shake, "")
}

// refused is what comes of a connection that could not be opened: a response,
// or an exception if the options ask for one.
func (c *client) refused(d *dialling, h handshake, err error) sobek.Value {
	wire.Traffic(c.host, d.dialer, wire.Tags(c.host, c.host.Tags(), d.params.tags, d.systemTags(h)))
	if d.dialer.Options.Throw {
		wire.Throw(c.host, "%w", err)
	}
	if c.host.Context().Err() == nil {
		c.host.Logger().Warn("a WebSocket could not be opened: " + err.Error())
	}
	return c.response(d, h, err.Error())
}

func (c *client) response(d *dialling, h handshake, failure string) sobek.Value {
	headers := c.host.Runtime().NewObject()
	for name, values := range h.headers {
		// setting plain properties of fresh objects cannot fail
		_ = headers.Set(http.CanonicalHeaderKey(name), strings.Join(values, ", "))
	}
	o := c.host.Runtime().NewObject()
	_ = o.Set("status", h.status)
	_ = o.Set("url", d.address)
	_ = o.Set("headers", headers)
	_ = o.Set("body", h.body)
	_ = o.Set("error", failure)
	return o
}

// socket is the object that scripts get from connect. All of it belongs to the
// goroutine of the VU; the reader sends it events.
type socket struct {
	client   *client
	conn     *connection
	handlers map[string][]sobek.Callable
	timers   map[int64]*socketTimer
	nextID   int64
	closed   bool
}

// event is what the reader has read.
type event struct {
	kind string // message, binaryMessage, ping, pong or end
	data []byte
	took time.Duration // of a pong
	err  error         // of end
}

// play runs the function that sets the socket up and then its events until it
// is closed or ctx ends.
func (s *socket) play(ctx context.Context, start sobek.Callable) {
	events := make(chan event)
	done := make(chan struct{})
	reading := make(chan struct{})
	go func() {
		defer close(reading)
		s.conn.read(func(e event) {
			select {
			case events <- e:
			case <-done:
			}
		})
	}()
	defer func() {
		close(done)
		s.conn.drop()
		<-reading
	}()
	if _, err := start(sobek.Undefined(), s.object()); err != nil {
		panic(err)
	}
	s.emit("open")
	for !s.closed {
		due, timer := s.firstTimer()
		select {
		case e := <-events:
			s.handle(e)
		case <-due:
			s.fire(timer)
		case <-ctx.Done():
			_ = s.conn.close(websocket.CloseGoingAway, "") // the iteration ends whatever comes of it
			s.closed = true
		}
	}
}

// read reports events until the connection ends.
func (c *connection) read(report func(event)) {
	c.conn.SetPingHandler(func(payload string) error {
		report(event{kind: "ping"})
		// an answer that cannot be sent shows as the end of the connection
		_ = c.conn.WriteControl(websocket.PongMessage, []byte(payload), time.Now().Add(writeLimit))
		return nil
	})
	c.conn.SetPongHandler(func(payload string) error {
		if took, ok := c.pong(payload); ok {
			report(event{kind: "pong", took: took})
		}
		return nil
	})
	for {
		kind, data, err := c.conn.ReadMessage()
		if err != nil {
			report(event{kind: "end", err: err})
			return
		}
		if kind == websocket.BinaryMessage {
			report(event{kind: "binaryMessage", data: data})
		} else {
			report(event{kind: "message", data: data})
		}
	}
}

func (s *socket) handle(e event) {
	c, rt := s.client, s.client.host.Runtime()
	switch e.kind {
	case "message":
		c.host.Sample(c.metrics.received, 1, s.conn.tags)
		s.emit(e.kind, rt.ToValue(string(e.data)))
	case "binaryMessage":
		c.host.Sample(c.metrics.received, 1, s.conn.tags)
		s.emit(e.kind, rt.ToValue(rt.NewArrayBuffer(e.data)))
	case "pong":
		c.host.Sample(c.metrics.ping, milliseconds(e.took), s.conn.tags)
		s.emit(e.kind)
	case "ping":
		s.emit(e.kind)
	case "end":
		if !expected(e.err) {
			s.emit("error", rt.NewGoError(e.err))
		}
		code, _ := closeCode(e.err)
		s.finish(code)
	}
}

// emit calls the handlers of an event. What they throw leaves connect.
func (s *socket) emit(kind string, args ...sobek.Value) {
	for _, handler := range s.handlers[kind] {
		if _, err := handler(sobek.Undefined(), args...); err != nil {
			panic(err)
		}
	}
}

// finish marks the socket as closed and says so once.
func (s *socket) finish(code int) {
	if s.closed {
		return
	}
	s.closed = true
	s.emit("close", s.client.host.Runtime().ToValue(code))
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
