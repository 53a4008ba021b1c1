package proxy

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/reflection"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// pushFile describes service test.Toy { rpc Watch(Push) returns (stream Push) }.
func pushFile(t *testing.T) protoreflect.FileDescriptor {
	t.Helper()
	field := func(name string, number int32, typ descriptorpb.FieldDescriptorProto_Type) *descriptorpb.FieldDescriptorProto {
		return &descriptorpb.FieldDescriptorProto{Name: proto.String(name), Number: proto.Int32(number), Type: typ.Enum(),
			Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
	}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("test/push.proto"), Package: proto.String("test"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("Push"), Field: []*descriptorpb.FieldDescriptorProto{
			field("seq", 1, descriptorpb.FieldDescriptorProto_TYPE_UINT64),
			field("note", 2, descriptorpb.FieldDescriptorProto_TYPE_STRING),
			field("heartbeat", 9, descriptorpb.FieldDescriptorProto_TYPE_BOOL),
		}}},
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: proto.String("Toy"), Method: []*descriptorpb.MethodDescriptorProto{{
			Name: proto.String("Watch"), InputType: proto.String(".test.Push"), OutputType: proto.String(".test.Push"),
			ServerStreaming: proto.Bool(true)}}}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// pusher serves ten pushes, each third of them a heartbeat.
func pusher(t *testing.T, file protoreflect.FileDescriptor, reflects bool) string {
	t.Helper()
	push := file.Messages().ByName("Push")
	watch := func(_ any, s grpc.ServerStream) error {
		for i := range uint64(10) {
			m := dynamicpb.NewMessage(push)
			m.Set(push.Fields().ByName("seq"), protoreflect.ValueOfUint64(i))
			m.Set(push.Fields().ByName("note"), protoreflect.ValueOfString("news"))
			m.Set(push.Fields().ByName("heartbeat"), protoreflect.ValueOfBool(i%3 == 0))
			if err := s.SendMsg(m); err != nil {
				return err
			}
		}
		return nil
	}
	return serve(t, func(s *grpc.Server) {
		s.RegisterService(toy(map[string]grpc.StreamHandler{"Watch": watch}), nil)
		if !reflects {
			return
		}
		files := new(protoregistry.Files)
		if err := files.RegisterFile(file); err != nil {
			t.Fatal(err)
		}
		reflectionpb.RegisterServerReflectionServer(s, reflection.NewServerV1(
			reflection.ServerOptions{Services: s, DescriptorResolver: files}))
	})
}

func TestKeepHeartbeats(t *testing.T) {
	file := pushFile(t)
	addr := pusher(t, file, true)
	keep, err := KeepHeartbeats(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Listen(t.Context(), Config{Backend: addr})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	armed, err := p.Arm(Rule{Direction: ToClient, Share: 1, Keep: keep})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("passthrough:///"+p.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	s := open(t.Context(), t, conn, methodCount)
	push := file.Messages().ByName("Push")
	var got []uint64
	for {
		m := dynamicpb.NewMessage(push)
		if err := s.RecvMsg(m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		got = append(got, m.Get(push.Fields().ByName("seq")).Uint())
	}
	if !slices.Equal(got, []uint64{0, 3, 6, 9}) {
		t.Errorf("came: %v, want the heartbeats alone", got)
	}
	if seen, dropped := armed.Counts(); seen != 6 || dropped != 6 {
		t.Errorf("seen %d, dropped %d; heartbeats must not count", seen, dropped)
	}
}

func TestKeepHeartbeatsSaysWhatIsMissing(t *testing.T) {
	file := pushFile(t)
	if _, err := KeepHeartbeats(t.Context(), pusher(t, file, false)); err == nil {
		t.Error("no error from a server without reflection")
	}
	plain := serve(t, func(s *grpc.Server) { reflection.Register(s) })
	if _, err := KeepHeartbeats(t.Context(), plain); err == nil || !strings.Contains(err.Error(), "heartbeat") {
		t.Errorf("error %v", err)
	}
}

func TestIsTrueSurvivesAnyBytes(t *testing.T) {
	for _, b := range [][]byte{nil, {0xff}, {0x48}, {0x48, 0x80}, {0x0a, 0x05, 1}, []byte("\x00\x01\x02")} {
		if isTrue(b, 9) {
			t.Errorf("%x counts as a heartbeat", b)
		}
	}
	if !isTrue([]byte{0x08, 7, 0x48, 1}, 9) || isTrue([]byte{0x48, 1, 0x48, 0}, 9) {
		t.Error("a plain bool field is misread")
	}
}
