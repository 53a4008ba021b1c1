package proxy

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// heartbeatField is the bool field that marks a message without news.
const heartbeatField protoreflect.Name = "heartbeat"

// KeepHeartbeats asks the server at addr, by gRPC server reflection, which of
// its methods answer with messages that have a bool field "heartbeat", and
// returns a [Rule.Keep] that spares such a message when the field is true. It
// is an error when the server has no reflection, or no such method.
func KeepHeartbeats(ctx context.Context, addr string) (func(method string, message []byte) bool, error) {
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("look for heartbeats at %s: %w", addr, err)
	}
	defer func() { _ = conn.Close() }()
	files, err := reflectFiles(ctx, conn)
	if err != nil {
		return nil, fmt.Errorf("look for heartbeats at %s: %w", addr, err)
	}
	fields := heartbeatFields(files)
	if len(fields) == 0 {
		return nil, fmt.Errorf("look for heartbeats at %s: no method answers with a bool field %q", addr, heartbeatField)
	}
	return func(method string, message []byte) bool {
		field, ok := fields[method]
		return ok && isTrue(message, field)
	}, nil
}

// heartbeatFields gives the number of the field by full method name.
func heartbeatFields(files *protoregistry.Files) map[string]protowire.Number {
	out := map[string]protowire.Number{}
	files.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			service := f.Services().Get(i)
			for k := range service.Methods().Len() {
				method := service.Methods().Get(k)
				field := method.Output().Fields().ByName(heartbeatField)
				if field != nil && field.Kind() == protoreflect.BoolKind && !field.IsList() {
					out[fmt.Sprintf("/%s/%s", service.FullName(), method.Name())] = field.Number()
				}
			}
		}
		return true
	})
	return out
}

// isTrue reads one bool field of a message without knowing the others.
func isTrue(message []byte, field protowire.Number) bool {
	value := false
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return false
		}
		message = message[n:]
		if number == field && kind == protowire.VarintType {
			v, n := protowire.ConsumeVarint(message)
			if n < 0 {
				return false
			}
			value = protowire.DecodeBool(v) // the last one counts
			message = message[n:]
			continue
		}
		n = protowire.ConsumeFieldValue(number, kind, message)
		if n < 0 {
			return false
		}
		message = message[n:]
	}
	return value
}

// reflectFiles fetches the files of every service that the server names.
func reflectFiles(ctx context.Context, conn *grpc.ClientConn) (*protoregistry.Files, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the stream
	stream, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	if err != nil {
		return nil, err
	}
	ask := func(r *reflectionpb.ServerReflectionRequest) (*reflectionpb.ServerReflectionResponse, error) {
		if err := stream.Send(r); err != nil {
			return nil, err
		}
		return stream.Recv()
	}
	listed, err := ask(&reflectionpb.ServerReflectionRequest{
		MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}})
	if err != nil {
		return nil, err
	}
	set := &descriptorpb.FileDescriptorSet{}
	have := map[string]bool{}
	for _, service := range listed.GetListServicesResponse().GetService() {
		found, err := ask(&reflectionpb.ServerReflectionRequest{
			MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: service.GetName()}})
		if err != nil {
			return nil, err
		}
		for _, encoded := range found.GetFileDescriptorResponse().GetFileDescriptorProto() {
			var file descriptorpb.FileDescriptorProto
			if err := proto.Unmarshal(encoded, &file); err != nil {
				return nil, err
			}
			if !have[file.GetName()] {
				have[file.GetName()] = true
				set.File = append(set.File, &file)
			}
		}
	}
	return protodesc.FileOptions{AllowUnresolvable: true}.NewFiles(set)
}
