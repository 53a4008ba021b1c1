package script

import (
	"strings"

	"github.com/grafana/sobek"
)

// textEncoder is the constructor TextEncoder.
func (v *vm) textEncoder(call sobek.ConstructorCall) *sobek.Object {
	// setting plain properties of a fresh object cannot fail
	_ = call.This.Set("encoding", "utf-8")
	_ = call.This.Set("encode", native(func(call sobek.FunctionCall) sobek.Value {
		text := ""
		if !sobek.IsUndefined(call.Argument(0)) {
			text = call.Argument(0).String()
		}
		bytes, err := v.rt.New(v.rt.Get("Uint8Array"), v.rt.ToValue(v.rt.NewArrayBuffer([]byte(text))))
		if err != nil {
			panic(err)
		}
		return bytes
	}))
	return nil
}

// textDecoder is the constructor TextDecoder, for UTF-8.
func (v *vm) textDecoder(call sobek.ConstructorCall) *sobek.Object {
	label := "utf-8"
	if !sobek.IsUndefined(call.Argument(0)) {
		label = strings.ToLower(strings.TrimSpace(call.Argument(0).String()))
	}
	if label != "utf-8" && label != "utf8" {
		v.throwType("TextDecoder: want utf-8, got %s", label)
	}
	// setting plain properties of a fresh object cannot fail
	_ = call.This.Set("encoding", "utf-8")
	_ = call.This.Set("decode", native(func(call sobek.FunctionCall) sobek.Value {
		if sobek.IsUndefined(call.Argument(0)) {
			return v.rt.ToValue("")
		}
		text := strings.ToValidUTF8(string(v.bytes("TextDecoder.decode", call.Argument(0))), "\uFFFD")
		return v.rt.ToValue(strings.TrimPrefix(text, "\uFEFF"))
	}))
	return nil
}

// bytes returns the bytes of a text, an ArrayBuffer or a view of one. They
// are shared with the script.
func (v *vm) bytes(where string, value sobek.Value) []byte {
	if o, ok := value.(*sobek.Object); ok {
		switch b := o.Export().(type) {
		case sobek.ArrayBuffer:
			return b.Bytes()
		case []byte:
			return b
		}
		if view := o.Get("buffer"); view != nil {
			if buffer, ok := view.Export().(sobek.ArrayBuffer); ok {
				from := o.Get("byteOffset").ToInteger()
				return buffer.Bytes()[from : from+o.Get("byteLength").ToInteger()]
			}
		}
	} else if sobek.IsString(value) {
		return []byte(value.String())
	}
	v.throwType("%s: want text, an ArrayBuffer or a typed array, got %s", where, show(value))
	return nil
}
