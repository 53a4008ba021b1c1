package k6ws

import (
	"context"
	"fmt"
	"time"

	"github.com/gorilla/websocket"
	"github.com/grafana/sobek"

	"github.com/metachaos/metachaos/load/modules/wire"
	"github.com/metachaos/metachaos/load/script"
	"github.com/metachaos/metachaos/results"
)

// browser is the module k6/websockets of one VU.
type browser struct {
	*client
	blob *sobek.Object // the constructor
	open map[*webSocket]bool
}

func browserExports(c *client) script.Exports {
	b := &browser{client: c, open: map[*webSocket]bool{}}
	rt := c.host.Runtime()
	b.blob = rt.ToValue(b.newBlob).ToObject(rt)
	class := rt.ToValue(b.newWebSocket).ToObject(rt)
	for state, name := range [...]string{"CONNECTING", "OPEN", "CLOSING", "CLOSED"} {
		// setting plain properties of a fresh object cannot fail
		_ = class.Set(name, state)
	}
	c.host.BeforeIteration(b.abandonAll)
	c.host.AtEnd(b.abandonAll)
	return script.Exports{Named: map[string]any{"WebSocket": class, "Blob": b.blob}}
}

// abandonAll closes what an earlier iteration left open when it failed.
func (b *browser) abandonAll() {
	for w := range b.open {
		w.finish()
	}
}

// readyState of a WebSocket.
type readyState int

const (
	connecting readyState = iota
	open
	closing
	closed
)

// closeLimit is how long a server may take to answer a close.
const closeLimit = 10 * time.Second

// webSocket is one WebSocket object. All but dialling and reading happens on
// the event loop.
type webSocket struct {
	browser    *browser
	object     *sobek.Object
	dialling   *dialling
	base       *results.Tags // of the VU when the object was made
	queue      *wire.Queue
	cancel     context.CancelFunc
	conn       *connection // once open
	state      readyState
	binaryType string
	listeners  map[string][]sobek.Callable
	began      time.Time
}

// newWebSocket is the constructor: new WebSocket(url, protocols?, params?).
func (b *browser) newWebSocket(call sobek.ConstructorCall) *sobek.Object {
	options := b.ready("WebSocket")
	address := call.Argument(0).String()
	if err := checkURL(address); err != nil {
		wire.Throw(b.host, "WebSocket: %w", err)
	}
	p, err := readParams(call.Argument(2))
	if err != nil {
		wire.Throw(b.host, "WebSocket: %w", err)
	}
	p.protocols = append(p.protocols, protocols(call.Argument(1))...)
	ctx, cancel := context.WithCancel(b.host.Context())
	w := &webSocket{browser: b, object: call.This, base: b.host.Tags(), queue: wire.NewQueue(b.host), cancel: cancel,
		dialling:   &dialling{address: address, params: p, dialer: &wire.Dialer{Options: *options}, jar: wire.Jar(b.host)},
		binaryType: "blob", listeners: map[string][]sobek.Callable{}, began: time.Now()}
	w.define()
	b.open[w] = true
	go w.live(ctx)
	return nil
}

// protocols reads a name or an array of names.
func protocols(v sobek.Value) []string {
	if wire.Absent(v) {
		return nil
	}
	switch names := v.Export().(type) {
	case []any:
		var all []string
		for _, n := range names {
			all = append(all, fmt.Sprint(n))
		}
		return all
	case string:
		if names != "" {
			return []string{names}
		}
	}
	return nil
}

// live dials and reads until the connection ends, and tells the loop.
func (w *webSocket) live(ctx context.Context) {
	defer w.queue.Close()
	conn, shake, err := w.dialling.dial(ctx)
	if err != nil {
		w.queue.Push(func() error { return w.refused(shake, err) })
		return
	}
	defer conn.drop()
	stop := context.AfterFunc(ctx, conn.drop)
	defer stop()
	w.queue.Push(func() error { return w.opened(conn, shake) })
	conn.read(func(e event) { w.queue.Push(func() error { return w.handle(e) }) })
}

func (w *webSocket) opened(conn *connection, h handshake) error {
	b := w.browser
	w.conn = conn
	conn.tags = wire.Tags(b.host, w.base, w.dialling.params.tags, w.dialling.systemTags(h))
	b.host.Sample(b.metrics.sessions, 1, conn.tags)
	b.host.Sample(b.metrics.connecting, milliseconds(conn.opened.Sub(w.began)), conn.tags)
	if w.state == closing { // close was called while it was connecting
		return conn.close(websocket.CloseNormalClosure, "")
	}
	w.state = open
	return w.emit("open", nil)
}

func (w *webSocket) refused(h handshake, cause error) error {
	b := w.browser
	wire.Traffic(b.host, w.dialling.dialer, wire.Tags(b.host, w.base, w.dialling.params.tags, w.dialling.systemTags(h)))
	w.finish()
	if err := w.emit("error", map[string]any{"error": cause.Error()}); err != nil {
		return err
	}
	return w.emitClose(websocket.CloseAbnormalClosure, "")
}

func (w *webSocket) handle(e event) error {
	b, rt := w.browser, w.browser.host.Runtime()
	switch e.kind {
	case "message":
		b.host.Sample(b.metrics.received, 1, w.conn.tags)
		return w.emit("message", map[string]any{"data": string(e.data)})
	case "binaryMessage":
		b.host.Sample(b.metrics.received, 1, w.conn.tags)
		var data sobek.Value = rt.ToValue(rt.NewArrayBuffer(e.data))
		if w.binaryType == "blob" {
			blob, err := rt.New(b.blob, rt.NewArray(data))
			if err != nil {
				return err
			}
			data = blob
		}
		return w.emit("message", map[string]any{"data": data})
	case "pong":
		b.host.Sample(b.metrics.ping, milliseconds(e.took), w.conn.tags)
		return w.emit("pong", nil)
	case "ping":
		return w.emit("ping", nil)
	}
	return w.ended(e.err)
}

func (w *webSocket) ended(cause error) error {
	code, reason := closeCode(cause)
	asked := w.state == closing
	w.finish()
	if !asked && !expected(cause) {
		if err := w.emit("error", map[string]any{"error": cause.Error()}); err != nil {
			return err
		}
	}
	return w.emitClose(code, reason)
}

// finish closes the connection, if it is open still, and records the session.
func (w *webSocket) finish() {
	b := w.browser
	if w.state == closed {
		return
	}
	w.state = closed
	w.cancel()
	delete(b.open, w)
	if w.conn != nil {
		b.host.Sample(b.metrics.duration, milliseconds(time.Since(w.conn.opened)), w.conn.tags)
		wire.Traffic(b.host, w.conn.dialer, w.conn.tags)
	}
}

func (w *webSocket) emitClose(code int, reason string) error {
	return w.emit("close", map[string]any{"code": code, "reason": reason, "wasClean": code == websocket.CloseNormalClosure})
}

// emit calls the on… property of an event and its listeners.
func (w *webSocket) emit(kind string, fields map[string]any) error {
	rt := w.browser.host.Runtime()
	e := rt.NewObject()
	// setting plain properties of a fresh object cannot fail
	_ = e.Set("type", kind)
	_ = e.Set("target", w.object)
	_ = e.Set("timestamp", time.Now().UnixMilli())
	for name, value := range fields {
		_ = e.Set(name, value)
	}
	handlers := w.listeners[kind]
	if own, ok := sobek.AssertFunction(w.object.Get("on" + kind)); ok {
		handlers = append([]sobek.Callable{own}, handlers...)
	}
	for _, handler := range handlers {
		if _, err := handler(w.object, e); err != nil {
			return err
		}
	}
	return nil
}
