package k6ws

import (
	"github.com/grafana/sobek"

	"github.com/metachaos/metachaos/load/modules/wire"
)

// blob is the content of a Blob object. It never changes.
type blob struct {
	data []byte
	kind string // as in content types
}

// blobProperty holds a blob in its object; scripts have no name for it.
var blobProperty = sobek.NewSymbol("blob")

// newBlob is the constructor: new Blob(parts?, {type}?).
func (b *browser) newBlob(call sobek.ConstructorCall) *sobek.Object {
	content := &blob{}
	if parts := call.Argument(0); !wire.Absent(parts) {
		b.host.Runtime().ForOf(parts, func(part sobek.Value) bool {
			if other := b.blobOf(part); other != nil {
				content.data = append(content.data, other.data...)
			} else if bytes, ok := wire.Bytes(part); ok {
				content.data = append(content.data, bytes...)
			} else {
				content.data = append(content.data, part.String()...)
			}
			return true
		})
	}
	if o, ok := call.Argument(1).(*sobek.Object); ok {
		if kind := o.Get("type"); !wire.Absent(kind) {
			content.kind = kind.String()
		}
	}
	b.fill(call.This, content)
	return nil
}

func (b *browser) blobOf(v sobek.Value) *blob {
	o, ok := v.(*sobek.Object)
	if !ok {
		return nil
	}
	held := o.GetSymbol(blobProperty)
	if held == nil {
		return nil
	}
	content, _ := held.Export().(*blob)
	return content
}

func (b *browser) fill(o *sobek.Object, content *blob) {
	rt := b.host.Runtime()
	// setting plain properties of a fresh object cannot fail
	_ = o.DefineDataPropertySymbol(blobProperty, rt.ToValue(content), sobek.FLAG_FALSE, sobek.FLAG_TRUE, sobek.FLAG_FALSE)
	_ = o.Set("size", len(content.data))
	_ = o.Set("type", content.kind)
	promise := func(value func() any) func(sobek.FunctionCall) sobek.Value {
		return func(sobek.FunctionCall) sobek.Value {
			p, resolve, _ := rt.NewPromise()
			if err := resolve(value()); err != nil {
				panic(err)
			}
			return rt.ToValue(p)
		}
	}
	_ = o.Set("text", promise(func() any { return string(content.data) }))
	_ = o.Set("arrayBuffer", promise(func() any { return rt.NewArrayBuffer(append([]byte(nil), content.data...)) }))
	_ = o.Set("bytes", promise(func() any {
		view, err := rt.New(rt.Get("Uint8Array"), rt.ToValue(rt.NewArrayBuffer(append([]byte(nil), content.data...))))
		if err != nil {
			panic(err)
		}
		return view
	}))
	_ = o.Set("slice", func(call sobek.FunctionCall) sobek.Value { return b.slice(content, call) })
}

// slice makes a Blob of a part: slice(from?, to?, type?), negative from the end.
func (b *browser) slice(content *blob, call sobek.FunctionCall) sobek.Value {
	size := int64(len(content.data))
	at := func(v sobek.Value, otherwise int64) int64 {
		if wire.Absent(v) {
			return otherwise
		}
		n := v.ToInteger()
		if n < 0 {
			n += size
		}
		return max(0, min(n, size))
	}
	from, to := at(call.Argument(0), 0), at(call.Argument(1), size)
	part := &blob{data: content.data[from:max(from, to)]}
	if kind := call.Argument(2); !wire.Absent(kind) {
		part.kind = kind.String()
	}
	o, err := b.host.Runtime().New(b.blob)
	if err != nil {
		panic(err)
	}
	b.fill(o, part)
	return o
}
