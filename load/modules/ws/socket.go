package k6ws

import (
	"time"

	"github.com/gorilla/websocket"
	"github.com/grafana/sobek"

	"github.com/metachaos/metachaos/load/modules/wire"
)

// events of a socket of k6/ws.
var socketEvents = [...]string{"open", "message", "binaryMessage", "ping", "pong", "close", "error"}

// object makes what scripts see of the socket.
func (s *socket) object() *sobek.Object {
	o := s.client.host.Runtime().NewObject()
	for name, method := range map[string]func(sobek.FunctionCall) sobek.Value{
		"on": s.on, "send": s.send, "sendBinary": s.sendBinary, "ping": s.ping, "close": s.close,
		"setTimeout":  func(call sobek.FunctionCall) sobek.Value { return s.setTimer("setTimeout", call, false) },
		"setInterval": func(call sobek.FunctionCall) sobek.Value { return s.setTimer("setInterval", call, true) },
	} {
		// setting plain properties of a fresh object cannot fail
		_ = o.Set(name, method)
	}
	return o
}

func (s *socket) on(call sobek.FunctionCall) sobek.Value {
	kind := call.Argument(0).String()
	handler, ok := sobek.AssertFunction(call.Argument(1))
	if !ok {
		wire.Throw(s.client.host, "socket.on(%q): want a function, got %s", kind, call.Argument(1))
	}
	for _, known := range socketEvents {
		if kind == known {
			s.handlers[kind] = append(s.handlers[kind], handler)
			return sobek.Undefined()
		}
	}
	s.client.host.Logger().Warn("socket.on: there is no event " + kind)
	return sobek.Undefined()
}

func (s *socket) send(call sobek.FunctionCall) sobek.Value {
	s.write(websocket.TextMessage, []byte(call.Argument(0).String()))
	return sobek.Undefined()
}

func (s *socket) sendBinary(call sobek.FunctionCall) sobek.Value {
	data, ok := wire.Bytes(call.Argument(0))
	if !ok {
		wire.Throw(s.client.host, "socket.sendBinary: want an ArrayBuffer or a typed array, got %s", call.Argument(0))
	}
	s.write(websocket.BinaryMessage, data)
	return sobek.Undefined()
}

// write sends a message. A failure is an event, as the socket is likely gone.
func (s *socket) write(kind int, data []byte) {
	if s.closed {
		return
	}
	if err := s.conn.write(kind, data); err != nil {
		s.fail(err)
		return
	}
	s.client.host.Sample(s.client.metrics.sent, 1, s.conn.tags)
}

func (s *socket) ping(sobek.FunctionCall) sobek.Value {
	if !s.closed {
		if err := s.conn.ping(); err != nil {
			s.fail(err)
		}
	}
	return sobek.Undefined()
}

func (s *socket) fail(err error) { s.emit("error", s.client.host.Runtime().NewGoError(err)) }

// close closes the socket; without a code, as going away.
func (s *socket) close(call sobek.FunctionCall) sobek.Value {
	code := websocket.CloseGoingAway
	if a := call.Argument(0); !wire.Absent(a) {
		code = int(a.ToInteger())
	}
	if s.closed {
		return sobek.Undefined()
	}
	if err := s.conn.close(code, ""); err != nil {
		s.fail(err)
	}
	s.finish(code)
	return sobek.Undefined()
}

// socketTimer is a function to be called while the socket is open.
type socketTimer struct {
	id    int64
	due   time.Time
	every time.Duration // 0 fires once
	fn    sobek.Callable
}

func (s *socket) setTimer(name string, call sobek.FunctionCall, again bool) sobek.Value {
	fn, ok := sobek.AssertFunction(call.Argument(0))
	if !ok {
		wire.Throw(s.client.host, "socket.%s: want a function, got %s", name, call.Argument(0))
	}
	ms := call.Argument(1).ToFloat()
	if !(ms > 0 && ms < 1e12) { // also NaN
		wire.Throw(s.client.host, "socket.%s: want more than 0 milliseconds, got %s", name, call.Argument(1))
	}
	d := time.Duration(ms * float64(time.Millisecond))
	s.nextID++
	t := &socketTimer{id: s.nextID, due: time.Now().Add(d), fn: fn}
	if again {
		t.every = d
	}
	s.timers[t.id] = t
	return sobek.Undefined()
}

// firstTimer returns the timer that is due first and a channel that says when;
// a nil channel without timers.
func (s *socket) firstTimer() (<-chan time.Time, *socketTimer) {
	var first *socketTimer
	for _, t := range s.timers {
		if first == nil || t.due.Before(first.due) || t.due.Equal(first.due) && t.id < first.id {
			first = t
		}
	}
	if first == nil {
		return nil, nil
	}
	return time.After(time.Until(first.due)), first
}

func (s *socket) fire(t *socketTimer) {
	if t.every > 0 {
		t.due = time.Now().Add(t.every)
	} else {
		delete(s.timers, t.id)
	}
	if _, err := t.fn(sobek.Undefined()); err != nil {
		panic(err)
	}
}
