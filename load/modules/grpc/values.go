package k6grpc

import (
	"errors"
	"fmt"

	"github.com/grafana/sobek"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/metachaos/metachaos/load/modules/wire"
)

// message makes a message from an object of the script, in the JSON form of
// Protocol Buffers.
func (c *client) message(kind protoreflect.MessageDescriptor, v sobek.Value) (*dynamicpb.Message, error) {
	if wire.Absent(v) {
		return nil, errors.New("want an object, got nothing; an empty message is {}")
	}
	o, ok := v.(*sobek.Object)
	if !ok {
		return nil, fmt.Errorf("want an object, got %s", v)
	}
	text, err := o.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("want an object that JSON can hold: %w", err)
	}
	m := dynamicpb.NewMessage(kind)
	if err := (protojson.UnmarshalOptions{Resolver: c.schema.types()}).Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("does not fit %s: %w", kind.FullName(), err)
	}
	return m, nil
}

// value makes an object from a message, with the zero values of fields that
// are not set.
func (c *client) value(m proto.Message) (sobek.Value, error) {
	text, err := protojson.MarshalOptions{EmitUnpopulated: true, Resolver: c.schema.types()}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("decode a message: %w", err)
	}
	rt := c.vu.host.Runtime()
	parse, _ := sobek.AssertFunction(rt.Get("JSON").ToObject(rt).Get("parse"))
	return parse(sobek.Undefined(), rt.ToValue(string(text)))
}

// failure is the error of a response or an event.
func (c *client) failure(s *status.Status) sobek.Value {
	rt := c.vu.host.Runtime()
	details := rt.NewArray()
	for i, packed := range s.Proto().GetDetails() {
		detail, err := c.value(packed)
		if err != nil { // of a type that is not loaded: as it came
			detail = rt.ToValue(map[string]any{"@type": packed.GetTypeUrl(), "value": rt.NewArrayBuffer(packed.GetValue())})
		}
		// setting plain properties of fresh objects cannot fail
		_ = details.Set(fmt.Sprint(i), detail)
	}
	o := rt.NewObject()
	_ = o.Set("code", int(s.Code()))
	_ = o.Set("message", s.Message())
	_ = o.Set("details", details)
	return o
}

// metadataObject is an object of lists of texts.
func metadataObject(rt *sobek.Runtime, md metadata.MD) *sobek.Object {
	o := rt.NewObject()
	for name, values := range md {
		list := make([]any, len(values))
		for i, v := range values {
			list[i] = v
		}
		// setting a plain property of a fresh object cannot fail
		_ = o.Set(name, rt.NewArray(list...))
	}
	return o
}
