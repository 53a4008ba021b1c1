package k6ws

import (
	"slices"
	"time"

	"github.com/gorilla/websocket"
	"github.com/grafana/sobek"

	"github.com/metachaos/metachaos/load/modules/wire"
)

// browserEvents are those that a WebSocket has listeners for.
var browserEvents = []string{"open", "message", "error", "close", "ping", "pong"}

// define gives the object its methods and properties.
func (w *webSocket) define() {
	rt := w.browser.host.Runtime()
	for name, method := range map[string]func(sobek.FunctionCall) sobek.Value{
		"send": w.send, "ping": w.ping, "close": w.close, "addEventListener": w.addEventListener,
	} {
		// setting plain properties of a fresh object cannot fail
		_ = w.object.Set(name, method)
	}
	_ = w.object.Set("url", w.dialling.address)
	for _, kind := range browserEvents {
		_ = w.object.Set("on"+kind, sobek.Null())
	}
	getter := func(name string, get func() any) {
		// defining a new property of an extensible object cannot fail
		_ = w.object.DefineAccessorProperty(name, rt.ToValue(func(sobek.FunctionCall) sobek.Value { return rt.ToValue(get()) }),
			nil, sobek.FLAG_FALSE, sobek.FLAG_TRUE)
	}
	getter("readyState", func() any { return int(w.state) })
	getter("bufferedAmount", func() any { return 0 }) // send returns when the message is on its way
	getter("protocol", func() any {
		if w.conn == nil {
			return ""
		}
		return w.conn.conn.Subprotocol()
	})
	_ = w.object.DefineAccessorProperty("binaryType",
		rt.ToValue(func(sobek.FunctionCall) sobek.Value { return rt.ToValue(w.binaryType) }),
		rt.ToValue(w.setBinaryType), sobek.FLAG_FALSE, sobek.FLAG_TRUE)
}

func (w *webSocket) setBinaryType(call sobek.FunctionCall) sobek.Value {
	kind := call.Argument(0).String()
	if kind != "blob" && kind != "arraybuffer" {
		wire.Throw(w.browser.host, `WebSocket.binaryType: want "blob" or "arraybuffer", got %q`, kind)
	}
	w.binaryType = kind
	return sobek.Undefined()
}

func (w *webSocket) addEventListener(call sobek.FunctionCall) sobek.Value {
	kind := call.Argument(0).String()
	listener, ok := sobek.AssertFunction(call.Argument(1))
	switch {
	case !slices.Contains(browserEvents, kind):
		wire.Throw(w.browser.host, "WebSocket.addEventListener: there is no event %q; there are %v", kind, browserEvents)
	case !ok:
		wire.Throw(w.browser.host, "WebSocket.addEventListener(%q): want a function, got %s", kind, call.Argument(1))
	}
	w.listeners[kind] = append(w.listeners[kind], listener)
	return sobek.Undefined()
}

// send sends text, or bytes as a binary message. Once the socket is closing it
// does nothing, as in browsers.
func (w *webSocket) send(call sobek.FunctionCall) sobek.Value {
	kind := websocket.TextMessage
	var data []byte
	switch v := call.Argument(0); {
	case w.browser.blobOf(v) != nil:
		kind, data = websocket.BinaryMessage, w.browser.blobOf(v).data
	default:
		if bytes, ok := wire.Bytes(v); ok {
			kind, data = websocket.BinaryMessage, bytes
		} else {
			data = []byte(v.String())
		}
	}
	switch w.state {
	case connecting:
		wire.Throw(w.browser.host, "WebSocket.send: the socket is not open yet; send from onopen")
	case open:
		if err := w.conn.write(kind, data); err != nil {
			w.fail(err)
			break
		}
		w.browser.host.Sample(w.browser.metrics.sent, 1, w.conn.tags)
	}
	return sobek.Undefined()
}

// fail reports an error as an event, in its turn.
func (w *webSocket) fail(cause error) {
	w.queue.Push(func() error { return w.emit("error", map[string]any{"error": cause.Error()}) })
}

func (w *webSocket) ping(sobek.FunctionCall) sobek.Value {
	if w.state != open {
		wire.Throw(w.browser.host, "WebSocket.ping: the socket is not open")
	}
	if err := w.conn.ping(); err != nil {
		w.fail(err)
	}
	return sobek.Undefined()
}

// close starts the closing: close(code = 1000, reason = "").
func (w *webSocket) close(call sobek.FunctionCall) sobek.Value {
	code, reason := websocket.CloseNormalClosure, ""
	if a := call.Argument(0); !wire.Absent(a) {
		code = int(a.ToInteger())
	}
	if a := call.Argument(1); !wire.Absent(a) {
		reason = a.String()
	}
	if code != websocket.CloseNormalClosure && (code < 3000 || code > 4999) {
		wire.Throw(w.browser.host, "WebSocket.close: want 1000 or 3000 to 4999 as code, got %d", code)
	}
	switch w.state {
	case connecting:
		w.state = closing
		w.cancel() // ends the dialling, with the events of a failure
	case open:
		w.state = closing
		if err := w.conn.close(code, reason); err != nil {
			w.fail(err)
			break
		}
		w.browser.host.Sample(w.browser.metrics.sent, 1, w.conn.tags) // k6 counts it too
		time.AfterFunc(closeLimit, w.conn.drop)                       // which does no harm later
	}
	return sobek.Undefined()
}
