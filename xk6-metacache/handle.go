package metacache

import (
	"fmt"

	"github.com/grafana/sobek"

	"github.com/metachaos/metachaos/load/script"
	"github.com/metachaos/metachaos/xk6-metacache/fleet"
)

// handle is the Fleet object of one VU.
type handle struct {
	host   script.Host
	module *Module
	index  int
	meters *meters
	client int // with client(i); only meaningful if pinned
	pinned bool
}

// object makes the JavaScript object. Its methods are native functions, never
// reflection: they are on the hot path.
func (h *handle) object() *sobek.Object {
	rt := h.host.Runtime()
	o := rt.NewObject()
	method := func(name string, f func(sobek.FunctionCall) sobek.Value) {
		_ = o.Set(name, f) // cannot fail on a plain new object
	}
	method("read", func(call sobek.FunctionCall) sobek.Value {
		key := h.key(call, "read")
		f := h.fleet()
		return h.result(f.Read(h.host.Context(), h.pick(f), key))
	})
	method("write", func(call sobek.FunctionCall) sobek.Value {
		key := h.key(call, "write")
		value := h.bytes(call.Argument(1))
		f := h.fleet()
		return h.result(f.Write(h.host.Context(), h.pick(f), key, value))
	})
	method("scan", func(sobek.FunctionCall) sobek.Value {
		f := h.fleet()
		return h.result(f.Scan(h.host.Context(), h.pick(f)))
	})
	method("readMany", h.readMany)
	if !h.pinned {
		method("client", h.pin)
	}
	return o
}

// readMany reads an array of keys in turn and returns an array of results.
func (h *handle) readMany(call sobek.FunctionCall) sobek.Value {
	rt := h.host.Runtime()
	var keys []string
	if err := rt.ExportTo(call.Argument(0), &keys); err != nil {
		panic(rt.NewTypeError("readMany(keys): want an array of keys"))
	}
	f := h.fleet()
	out := make([]any, len(keys))
	for i, key := range keys {
		out[i] = h.result(f.Read(h.host.Context(), h.pick(f), key))
	}
	return rt.NewArray(out...)
}

// pin returns a handle whose operations all come from one client.
func (h *handle) pin(call sobek.FunctionCall) sobek.Value {
	rt := h.host.Runtime()
	i, ok := call.Argument(0).Export().(int64)
	size := int64(h.size())
	if !ok || i < 0 || i >= size {
		panic(rt.NewTypeError(fmt.Sprintf("client(i): got %s, want a whole number from 0 to %d", call.Argument(0), size-1)))
	}
	return (&handle{host: h.host, module: h.module, index: h.index, meters: h.meters, client: int(i), pinned: true}).object()
}

func (h *handle) size() int {
	h.module.mu.Lock()
	defer h.module.mu.Unlock()
	return h.module.fleets[h.index].options.clients
}

// fleet returns the running fleet or throws.
func (h *handle) fleet() *fleet.Fleet {
	rt := h.host.Runtime()
	if h.host.InInit() {
		panic(rt.NewTypeError("a fleet cannot be used in init code: call it in the default function"))
	}
	f, err := h.module.started(h.host.Context(), h.index)
	if err != nil {
		panic(rt.NewGoError(err))
	}
	return f
}

func (h *handle) pick(f *fleet.Fleet) int {
	if h.pinned {
		return h.client
	}
	return f.Next()
}

func (h *handle) key(call sobek.FunctionCall, method string) string {
	v := call.Argument(0)
	if sobek.IsUndefined(v) || sobek.IsNull(v) {
		panic(h.host.Runtime().NewTypeError(method + "(key): the key is missing"))
	}
	return v.String()
}

// bytes takes a text or an ArrayBuffer; anything else is written as its text.
func (h *handle) bytes(v sobek.Value) []byte {
	if sobek.IsUndefined(v) || sobek.IsNull(v) {
		return nil
	}
	if b, ok := v.Export().(sobek.ArrayBuffer); ok {
		return b.Bytes()
	}
	return []byte(v.String())
}

func (h *handle) result(r fleet.Result) sobek.Value {
	h.meters.record(r)
	return h.host.Runtime().NewDynamicObject(&result{rt: h.host.Runtime(), r: r})
}
