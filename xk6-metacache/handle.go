package metacache

import (
	"fmt"

	"github.com/grafana/sobek"

	"github.com/metachaos/metachaos/load/script"
	"github.com/metachaos/metachaos/xk6-metacache/fleet"
)

// handle is the Fleet object of one VU, or of one client of it.
type handle struct {
	host    script.Host
	module  *Module
	shared  *sharedFleet
	meters  *meters
	running *fleet.Fleet // once it was used
	client  int          // only meaningful if pinned
	pinned  bool
}

// install gives an object the methods of the handle. They are native
// functions, never reflection: they are on the hot path.
func (h *handle) install(o *sobek.Object) *sobek.Object {
	for name, method := range map[string]func(sobek.FunctionCall) sobek.Value{
		"read": h.read, "write": h.write, "scan": h.scan, "readMany": h.readMany,
	} {
		_ = o.Set(name, method) // cannot fail on a plain new object
	}
	if !h.pinned {
		_ = o.Set("client", h.pin)
	}
	return o
}

func (h *handle) read(call sobek.FunctionCall) sobek.Value {
	key := h.key(call.Argument(0), "read(key)")
	f := h.fleet()
	r := f.Read(h.host.Context(), h.pick(f), key)
	return h.result(&r)
}

func (h *handle) write(call sobek.FunctionCall) sobek.Value {
	key := h.key(call.Argument(0), "write(key, value)")
	value := h.bytes(call.Argument(1))
	f := h.fleet()
	r := f.Write(h.host.Context(), h.pick(f), key, value)
	return h.result(&r)
}

func (h *handle) scan(sobek.FunctionCall) sobek.Value {
	f := h.fleet()
	r := f.Scan(h.host.Context(), h.pick(f))
	return h.result(&r)
}

// readMany reads an array of keys in turn and returns an array of results.
func (h *handle) readMany(call sobek.FunctionCall) sobek.Value {
	keys := h.keys(call.Argument(0))
	f := h.fleet()
	b := &batch{handle: h, results: make([]fleet.Result, len(keys))}
	for i, key := range keys {
		b.results[i] = f.Read(h.host.Context(), h.pick(f), key)
		h.meters.record(&b.results[i])
	}
	return h.host.Runtime().NewDynamicArray(b)
}

// pin returns a handle whose operations all come from one client.
func (h *handle) pin(call sobek.FunctionCall) sobek.Value {
	i, ok := call.Argument(0).Export().(int64)
	size := int64(h.shared.options.clients)
	if !ok || i < 0 || i >= size {
		h.throwType("client(i): got %s, want a whole number from 0 to %d", show(call.Argument(0)), size-1)
	}
	one := *h
	one.client, one.pinned = int(i), true
	return one.install(h.host.Runtime().NewObject())
}

// fleet returns the running fleet or throws.
func (h *handle) fleet() *fleet.Fleet {
	if h.running != nil {
		return h.running
	}
	if h.host.InInit() {
		h.throwType("a fleet cannot be used in init code: call it in the default function")
	}
	f, err := h.module.started(h.host.Context(), h.shared)
	if err != nil {
		panic(h.host.Runtime().NewGoError(err))
	}
	h.running = f
	return f
}

func (h *handle) pick(f *fleet.Fleet) int {
	if h.pinned {
		return h.client
	}
	return f.Next()
}

// result records an operation and shows it to the script.
func (h *handle) result(r *fleet.Result) sobek.Value {
	h.meters.record(r)
	return h.wrap(r)
}

func (h *handle) wrap(r *fleet.Result) sobek.Value {
	rt := h.host.Runtime()
	return rt.NewDynamicObject(&result{rt: rt, r: r})
}

// key takes a text, or a number for its text. Anything else is a mistake that
// would read a key such as "undefined" or "[object Object]".
func (h *handle) key(v sobek.Value, method string) string {
	s, ok := text(v)
	if !ok {
		h.throwType("%s: the key is %s, want a text", method, show(v))
	}
	return s
}

// keys takes an array, or anything else that can be iterated but a text.
func (h *handle) keys(v sobek.Value) (keys []string) {
	o, ok := v.(*sobek.Object)
	if !ok {
		h.throwType("readMany(keys): got %s, want an array of keys", show(v))
	}
	if keys, ok := plainTexts(o); ok {
		return keys
	}
	h.host.Runtime().ForOf(o, func(v sobek.Value) bool {
		key, ok := text(v)
		if !ok {
			h.throwType("readMany(keys): keys[%d] is %s, want a text", len(keys), show(v))
		}
		keys = append(keys, key)
		return true
	})
	return keys
}

// plainTexts returns the elements of an array of nothing but texts, at a small
// part of the cost of iterating it.
func plainTexts(o *sobek.Object) ([]string, bool) {
	all, ok := o.Export().([]any)
	if !ok || o.ClassName() != "Array" {
		return nil, false
	}
	texts := make([]string, len(all))
	for i, one := range all {
		if texts[i], ok = one.(string); !ok {
			return nil, false
		}
	}
	return texts, true
}

// text returns texts as they are, and numbers as they are written.
func text(v sobek.Value) (string, bool) {
	if s, ok := v.(sobek.String); ok {
		return s.String(), true
	}
	switch v.Export().(type) {
	case int64, float64:
		return v.String(), true
	}
	return "", false
}

// bytes takes what is to be written: a text or a number, or bytes. The bytes
// are copied, since the script may go on to change them.
func (h *handle) bytes(v sobek.Value) []byte {
	if s, ok := text(v); ok {
		return []byte(s)
	}
	switch e := v.Export().(type) {
	case nil:
		return nil
	case sobek.ArrayBuffer:
		return append([]byte{}, e.Bytes()...)
	case []byte:
		return append([]byte{}, e...)
	}
	h.throwType("write(key, value): the value is %s, want a text, an ArrayBuffer or a Uint8Array", show(v))
	return nil
}

func (h *handle) throwType(format string, args ...any) {
	panic(h.host.Runtime().NewTypeError(fmt.Sprintf(format, args...)))
}
