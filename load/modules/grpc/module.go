// Package k6grpc is the module k6/net/grpc: a gRPC client for services that
// are known at run time only, from .proto files, descriptor sets or the
// server's reflection.
package k6grpc

import (
	"github.com/grafana/sobek"
	"google.golang.org/grpc/codes"

	"github.com/metachaos/metachaos/load/modules/wire"
	"github.com/metachaos/metachaos/load/script"
	"github.com/metachaos/metachaos/results"
)

// New returns the module "k6/net/grpc".
func New() script.Module { return &module{compiled: compiledSchemas{byKey: map[string]*compiling{}}} }

// module serves all VUs; they share what was compiled.
type module struct{ compiled compiledSchemas }

var _ script.Module = (*module)(nil)

// Exports makes the exports for one VU.
func (m *module) Exports(h script.Host) script.Exports {
	host := h.(script.ProtocolHost) // as the engine promises
	v := &vu{host: host, module: m, open: map[*stream]bool{}, connected: map[*client]bool{},
		duration: host.Builtin("grpc_req_duration"), streams: host.Builtin("grpc_streams"),
		sent: host.Builtin("grpc_streams_msgs_sent"), received: host.Builtin("grpc_streams_msgs_received")}
	host.BeforeIteration(v.abandonStreams)
	host.AtEnd(v.disconnectAll)
	named := map[string]any{"Client": v.newClient, "Stream": v.newStream,
		"HealthcheckUnknown": "UNKNOWN", "HealthcheckServing": "SERVING",
		"HealthcheckNotServing": "NOT_SERVING", "HealthcheckServiceUnknown": "SERVICE_UNKNOWN"}
	for code, name := range statusNames {
		named["Status"+name] = code
	}
	return script.Exports{Named: named}
}

// statusNames are the names of the status codes, by code.
var statusNames = [...]string{
	codes.OK: "OK", codes.Canceled: "Canceled", codes.Unknown: "Unknown", codes.InvalidArgument: "InvalidArgument",
	codes.DeadlineExceeded: "DeadlineExceeded", codes.NotFound: "NotFound", codes.AlreadyExists: "AlreadyExists",
	codes.PermissionDenied: "PermissionDenied", codes.ResourceExhausted: "ResourceExhausted",
	codes.FailedPrecondition: "FailedPrecondition", codes.Aborted: "Aborted", codes.OutOfRange: "OutOfRange",
	codes.Unimplemented: "Unimplemented", codes.Internal: "Internal", codes.Unavailable: "Unavailable",
	codes.DataLoss: "DataLoss", codes.Unauthenticated: "Unauthenticated",
}

// vu is the module in one VU.
type vu struct {
	host      script.ProtocolHost
	module    *module
	open      map[*stream]bool
	connected map[*client]bool

	duration, streams, sent, received *results.Metric
}

func (v *vu) throw(format string, args ...any) { wire.Throw(v.host, format, args...) }

// clientProperty holds a client in its object; scripts have no name for it.
var clientProperty = sobek.NewSymbol("client")

// client is one Client object. It belongs to the event loop of its VU.
type client struct {
	vu     *vu
	schema schema
	conn   *connection // nil when there is none
}

// newClient is the constructor: new Client().
func (v *vu) newClient(call sobek.ConstructorCall) *sobek.Object {
	c := &client{vu: v}
	// setting plain properties of a fresh object cannot fail
	_ = call.This.DefineDataPropertySymbol(clientProperty, v.host.Runtime().ToValue(c), sobek.FLAG_FALSE, sobek.FLAG_FALSE, sobek.FLAG_FALSE)
	for name, method := range map[string]func(sobek.FunctionCall) sobek.Value{
		"load": c.load, "loadProtoset": c.loadProtoset, "connect": c.connect, "invoke": c.invoke,
		"asyncInvoke": c.asyncInvoke, "healthCheck": c.healthCheck, "close": c.close,
	} {
		_ = call.This.Set(name, method)
	}
	return nil
}

func clientOf(v sobek.Value) *client {
	if o, ok := v.(*sobek.Object); ok {
		if held := o.GetSymbol(clientProperty); held != nil {
			c, _ := held.Export().(*client)
			return c
		}
	}
	return nil
}

// abandonStreams ends what an earlier iteration left open when it failed.
func (v *vu) abandonStreams() {
	for s := range v.open {
		s.finish()
	}
}

// disconnectAll closes the connections that scripts left open. They may be used
// over many iterations, and so live as long as the VU.
func (v *vu) disconnectAll() {
	v.abandonStreams()
	for c := range v.connected {
		c.disconnect()
	}
}
