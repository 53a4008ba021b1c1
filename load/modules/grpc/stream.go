package k6grpc

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/grafana/sobek"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/metachaos/metachaos/load/modules/wire"
	"github.com/metachaos/metachaos/results"
)

// stream is one Stream object. Its methods run on the event loop; one
// goroutine receives and one sends.
type stream struct {
	client   *client
	conn     *connection
	method   protoreflect.MethodDescriptor
	queue    *wire.Queue
	cancel   context.CancelFunc
	tags     *results.Tags
	handlers map[string][]sobek.Callable
	outbox   outbox
	ended    bool // the script has called end
	finished bool
}

// newStream is the constructor: new Stream(client, method, params?).
func (v *vu) newStream(call sobek.ConstructorCall) *sobek.Object {
	c := clientOf(call.Argument(0))
	switch {
	case v.host.InInit():
		v.throw("Stream: calls cannot be made in init code")
	case c == nil:
		v.throw("Stream: want a grpc.Client as first argument, got %s", call.Argument(0))
	case c.conn == nil:
		v.throw("Stream: there is no connection: call client.connect first")
	}
	method, err := c.schema.method(call.Argument(1).String())
	if err != nil {
		v.throw("Stream: %w", err)
	}
	p, err := readCallParams(call.Argument(2))
	if err != nil {
		v.throw("Stream: %w", err)
	}
	ctx, cancel := context.WithCancel(v.host.Context())
	if p.timeout > 0 {
		ctx, cancel = context.WithTimeout(v.host.Context(), p.timeout)
	}
	s := &stream{client: c, conn: c.conn, method: method, queue: wire.NewQueue(v.host), cancel: cancel,
		tags: c.tags(c.conn, method, v.host.Tags(), p.tags, noStatus), handlers: map[string][]sobek.Callable{}}
	s.outbox.wake = make(chan struct{}, 1)
	for name, m := range map[string]func(sobek.FunctionCall) sobek.Value{"on": s.on, "write": s.write, "end": s.end} {
		// setting a plain property of a fresh object cannot fail
		_ = call.This.Set(name, m)
	}
	v.open[s] = true
	v.host.Sample(v.streams, 1, s.tags)
	go s.live(metadata.NewOutgoingContext(ctx, p.metadata))
	return nil
}

// live carries messages both ways until the server ends the stream.
func (s *stream) live(ctx context.Context) {
	defer s.queue.Close()
	wireStream, err := s.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, nameOf(s.method))
	if err != nil {
		s.queue.Push(func() error { return s.over(err) })
		return
	}
	var sending sync.WaitGroup
	sending.Go(func() { s.outbox.send(wireStream) })
	for err == nil {
		m := dynamicpb.NewMessage(s.method.Output())
		if err = wireStream.RecvMsg(m); err == nil {
			at := time.Now()
			s.queue.Push(func() error { return s.data(m, at) })
		}
	}
	s.cancel() // so that the sender ends too
	sending.Wait()
	s.queue.Push(func() error { return s.over(err) })
}

func (s *stream) data(m *dynamicpb.Message, at time.Time) error {
	v := s.client.vu
	v.host.Sample(v.received, 1, s.tags)
	value, err := s.client.value(m)
	if err != nil {
		return err
	}
	return s.emit("data", value, v.host.Runtime().ToValue(map[string]any{"ts": at.UnixMilli()}))
}

// over tells how the stream ended.
func (s *stream) over(cause error) error {
	s.finish()
	if errors.Is(cause, io.EOF) {
		return s.emit("end")
	}
	return s.emit("error", s.client.failure(status.Convert(cause)))
}

// finish lets go of the stream.
func (s *stream) finish() {
	if s.finished {
		return
	}
	s.finished = true
	s.cancel()
	delete(s.client.vu.open, s)
	wire.Traffic(s.client.vu.host, s.conn.dialer, s.tags)
}

func (s *stream) emit(kind string, args ...sobek.Value) error {
	for _, handler := range s.handlers[kind] {
		if _, err := handler(sobek.Undefined(), args...); err != nil {
			return err
		}
	}
	return nil
}

func (s *stream) on(call sobek.FunctionCall) sobek.Value {
	kind := call.Argument(0).String()
	handler, ok := sobek.AssertFunction(call.Argument(1))
	switch {
	case kind != "data" && kind != "error" && kind != "end":
		s.client.vu.throw("stream.on: there is no event %q; there are data, error and end", kind)
	case !ok:
		s.client.vu.throw("stream.on(%q): want a function, got %s", kind, call.Argument(1))
	}
	s.handlers[kind] = append(s.handlers[kind], handler)
	return sobek.Undefined()
}

// write sends a message, after those before it.
func (s *stream) write(call sobek.FunctionCall) sobek.Value {
	v := s.client.vu
	if s.ended || s.finished {
		v.host.Logger().Warn("stream.write: the stream has ended, and the message is not sent")
		return sobek.Undefined()
	}
	m, err := s.client.message(s.method.Input(), call.Argument(0))
	if err != nil {
		v.throw("stream.write: %s: %w", nameOf(s.method), err)
	}
	v.host.Sample(v.sent, 1, s.tags)
	s.outbox.put(m)
	return sobek.Undefined()
}

// end says that there are no further messages; the server may still answer.
func (s *stream) end(sobek.FunctionCall) sobek.Value {
	if !s.ended {
		s.ended = true
		s.outbox.put(nil)
	}
	return sobek.Undefined()
}

// outbox holds messages until the sender takes them, as sending may block.
type outbox struct {
	mu       sync.Mutex
	messages []*dynamicpb.Message // nil is the end
	wake     chan struct{}
}

func (o *outbox) put(m *dynamicpb.Message) {
	o.mu.Lock()
	o.messages = append(o.messages, m)
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *outbox) take() (m *dynamicpb.Message, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.messages) == 0 {
		return nil, false
	}
	m = o.messages[0]
	o.messages = o.messages[1:]
	return m, true
}

// send sends what is put until the end. Why a stream broke, its receiver
// learns.
func (o *outbox) send(s grpc.ClientStream) {
	for {
		m, ok := o.take()
		if !ok {
			select {
			case <-o.wake:
				continue
			case <-s.Context().Done():
				return
			}
		}
		if m == nil {
			_ = s.CloseSend() // it has no error to tell
			return
		}
		if s.SendMsg(m) != nil {
			return
		}
	}
}
