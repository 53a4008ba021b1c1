package k6grpc

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/grafana/sobek"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	health "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/metachaos/metachaos/load/modules/wire"
	"github.com/metachaos/metachaos/results"
)

// callTimeout is how long a call may take unless the script says.
const callTimeout = 2 * time.Minute

// callParams are what scripts say about a call.
type callParams struct {
	metadata metadata.MD
	tags     map[string]string
	timeout  time.Duration // 0: none was given
	discard  bool
}

func readCallParams(v sobek.Value) (p callParams, err error) {
	if wire.Absent(v) {
		return p, nil
	}
	o, ok := v.(*sobek.Object)
	if !ok {
		return p, fmt.Errorf("params: want an object, got %s", v)
	}
	for _, key := range o.Keys() {
		value := o.Get(key)
		if wire.Absent(value) {
			continue
		}
		switch key {
		case "metadata":
			p.metadata, err = readMetadata("params.metadata", value)
		case "tags":
			p.tags, err = wire.Strings("params.tags", value)
		case "timeout":
			p.timeout, err = wire.Duration(value)
		case "discardResponseMessage":
			p.discard = value.ToBoolean()
		case "headers":
			err = errors.New("gRPC has no headers; name them metadata")
		default:
			err = errors.New("there is no such parameter; there are metadata, tags, timeout and discardResponseMessage")
		}
		if err != nil {
			return p, fmt.Errorf("params.%s: %w", key, err)
		}
	}
	return p, nil
}

// rpc is one unary call. It may run on any goroutine; begin and end belong to
// the event loop.
type rpc struct {
	client  *client
	conn    *connection
	method  protoreflect.MethodDescriptor
	params  callParams
	base    *results.Tags
	request *dynamicpb.Message

	response          *dynamicpb.Message
	headers, trailers metadata.MD
	status            *status.Status
	took              time.Duration
}

// begin checks a call: invoke(method, request, params?).
func (c *client) begin(call sobek.FunctionCall) (*rpc, error) {
	r := &rpc{client: c, base: c.vu.host.Tags(), conn: c.conn}
	if c.vu.host.InInit() {
		return nil, errors.New("calls cannot be made in init code")
	}
	if c.conn == nil {
		return nil, errors.New("there is no connection: call client.connect first")
	}
	if wire.Absent(call.Argument(0)) || call.Argument(0).String() == "" {
		return nil, errors.New("want the name of a method, such as package.Service/Method")
	}
	var err error
	if r.method, err = c.schema.method(call.Argument(0).String()); err != nil {
		return nil, err
	}
	if r.method.IsStreamingClient() || r.method.IsStreamingServer() {
		return nil, fmt.Errorf("%s is a streaming method: use new grpc.Stream(client, %q)", nameOf(r.method), call.Argument(0))
	}
	if r.params, err = readCallParams(call.Argument(2)); err != nil {
		return nil, err
	}
	if r.request, err = c.message(r.method.Input(), call.Argument(1)); err != nil {
		return nil, fmt.Errorf("%s: request: %w", nameOf(r.method), err)
	}
	return r, nil
}

// do makes the call.
func (r *rpc) do(ctx context.Context) {
	timeout := r.params.timeout
	if timeout == 0 {
		timeout = callTimeout
	}
	ctx, cancel := context.WithTimeout(metadata.NewOutgoingContext(ctx, r.params.metadata), timeout)
	defer cancel()
	r.response = dynamicpb.NewMessage(r.method.Output())
	began := time.Now()
	err := r.conn.Invoke(ctx, nameOf(r.method), r.request, r.response, grpc.Header(&r.headers), grpc.Trailer(&r.trailers))
	r.took = time.Since(began)
	r.status = status.Convert(err)
}

// end records the call and makes the response for the script.
func (r *rpc) end() (sobek.Value, error) {
	c := r.client
	tags := c.tags(r.conn, r.method, r.base, r.params.tags, r.status.Code())
	c.vu.host.Sample(c.vu.duration, float64(r.took)/float64(time.Millisecond), tags)
	wire.Traffic(c.vu.host, r.conn.dialer, tags)
	rt := c.vu.host.Runtime()
	o := rt.NewObject()
	// setting plain properties of a fresh object cannot fail
	_ = o.Set("status", int(r.status.Code()))
	_ = o.Set("headers", metadataObject(rt, r.headers))
	_ = o.Set("trailers", metadataObject(rt, r.trailers))
	_ = o.Set("error", sobek.Null())
	_ = o.Set("message", sobek.Null())
	if !r.params.discard {
		message, err := c.value(r.response)
		if err != nil {
			return nil, err
		}
		_ = o.Set("message", message)
	}
	if r.status.Code() != codes.OK {
		_ = o.Set("error", c.failure(r.status))
	}
	return o, nil
}

// tags are those of samples of a call or stream. A stream that has not ended
// has no status: less than 0.
func (c *client) tags(conn *connection, m protoreflect.MethodDescriptor, base *results.Tags, own map[string]string, code codes.Code) *results.Tags {
	full := nameOf(m)
	url := conn.address + full
	system := map[string]string{"url": url, "service": string(m.Parent().FullName()), "method": string(m.Name())}
	if _, named := own["name"]; !named {
		system["name"] = url
	}
	if code != noStatus {
		system["status"] = strconv.Itoa(int(code))
	}
	return wire.Tags(c.vu.host, base, own, system)
}

// noStatus stands for the status of what has not ended.
const noStatus = codes.Code(1<<32 - 1)

func (c *client) invoke(call sobek.FunctionCall) sobek.Value {
	r, err := c.begin(call)
	if err != nil {
		c.vu.throw("client.invoke: %w", err)
	}
	return c.finish(r)
}

// finish makes a call while the VU waits.
func (c *client) finish(r *rpc) sobek.Value {
	r.do(c.vu.host.Context())
	response, err := r.end()
	if err != nil {
		c.vu.throw("client.invoke: %w", err)
	}
	return response
}

// asyncInvoke is invoke with a promise of the response.
func (c *client) asyncInvoke(call sobek.FunctionCall) sobek.Value {
	rt := c.vu.host.Runtime()
	promise, resolve, reject := rt.NewPromise()
	r, err := c.begin(call)
	if err != nil {
		_ = reject(rt.NewGoError(fmt.Errorf("client.asyncInvoke: %w", err))) // a fresh promise can be rejected
		return rt.ToValue(promise)
	}
	done := c.vu.host.RegisterCallback()
	ctx := c.vu.host.Context()
	go func() {
		r.do(ctx)
		done(func() error {
			response, err := r.end()
			if err != nil {
				return reject(rt.NewGoError(fmt.Errorf("client.asyncInvoke: %w", err)))
			}
			return resolve(response)
		})
	}()
	return rt.ToValue(promise)
}

// healthCheck asks the standard health service: healthCheck(service?).
func (c *client) healthCheck(call sobek.FunctionCall) sobek.Value {
	if c.conn == nil {
		c.vu.throw("client.healthCheck: there is no connection: call client.connect first")
	}
	method := health.File_grpc_health_v1_health_proto.Services().ByName("Health").Methods().ByName("Check")
	request := dynamicpb.NewMessage(method.Input())
	if a := call.Argument(0); !wire.Absent(a) {
		request.Set(method.Input().Fields().ByName("service"), protoreflect.ValueOfString(a.String()))
	}
	p, err := readCallParams(call.Argument(1))
	if err != nil {
		c.vu.throw("client.healthCheck: %w", err)
	}
	return c.finish(&rpc{client: c, conn: c.conn, base: c.vu.host.Tags(), method: method, request: request, params: p})
}

// readMetadata reads an object of texts, or of bytes under names in -bin.
func readMetadata(where string, v sobek.Value) (metadata.MD, error) {
	o, ok := v.(*sobek.Object)
	if !ok {
		return nil, fmt.Errorf("%s: want an object, got %s", where, v)
	}
	md := metadata.MD{}
	for _, key := range o.Keys() {
		value := o.Get(key)
		if raw, ok := wire.Bytes(value); ok {
			if !strings.HasSuffix(strings.ToLower(key), "-bin") {
				return nil, fmt.Errorf("%s.%s: bytes can be sent under names that end in -bin only", where, key)
			}
			md.Append(key, string(raw))
			continue
		}
		md.Append(key, value.String())
	}
	return md, nil
}
