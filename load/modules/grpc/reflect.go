package k6grpc

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	reflection "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// ask sends one question to the server's reflection and waits for the answer.
type ask func(*reflection.ServerReflectionRequest) (*reflection.ServerReflectionResponse, error)

// reflect asks a server for all of its services.
func reflect(ctx context.Context, conn grpc.ClientConnInterface) ([]protoreflect.FileDescriptor, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	files, err := askAll(askV1(ctx, conn))
	if status.Code(err) == codes.Unimplemented {
		files, err = askAll(askV1Alpha(ctx, conn))
	}
	if err != nil {
		return nil, fmt.Errorf("reflection: %w", err)
	}
	return files, nil
}

func askV1(ctx context.Context, conn grpc.ClientConnInterface) ask {
	stream, err := reflection.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	return func(q *reflection.ServerReflectionRequest) (*reflection.ServerReflectionResponse, error) {
		if err != nil {
			return nil, err
		}
		if err := stream.Send(q); err != nil {
			_, err = stream.Recv() // the reason
			return nil, err
		}
		return stream.Recv()
	}
}

// askV1Alpha speaks the older protocol, whose messages look the same on the
// wire.
func askV1Alpha(ctx context.Context, conn grpc.ClientConnInterface) ask {
	stream, err := grpc_reflection_v1alpha.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	return func(q *reflection.ServerReflectionRequest) (*reflection.ServerReflectionResponse, error) {
		if err != nil {
			return nil, err
		}
		old, answer := &grpc_reflection_v1alpha.ServerReflectionRequest{}, &reflection.ServerReflectionResponse{}
		if err := convert(q, old); err != nil {
			return nil, err
		}
		if err := stream.Send(old); err != nil {
			_, err = stream.Recv() // the reason
			return nil, err
		}
		oldAnswer, err := stream.Recv()
		if err != nil {
			return nil, err
		}
		return answer, convert(oldAnswer, answer)
	}
}

func convert(from, to proto.Message) error {
	raw, err := proto.Marshal(from)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	return proto.Unmarshal(raw, to)
}

// askAll collects the files of all services with what they import.
func askAll(ask ask) ([]protoreflect.FileDescriptor, error) {
	list, err := ask(&reflection.ServerReflectionRequest{MessageRequest: &reflection.ServerReflectionRequest_ListServices{}})
	if err != nil {
		return nil, err
	}
	found := &collected{ask: ask, known: map[string]bool{}}
	for _, s := range list.GetListServicesResponse().GetService() {
		if err := found.add(&reflection.ServerReflectionRequest{MessageRequest: &reflection.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: s.GetName()}}); err != nil {
			return nil, fmt.Errorf("service %s: %w", s.GetName(), err)
		}
	}
	return link("reflection", &found.set)
}

type collected struct {
	ask   ask
	known map[string]bool
	set   descriptorpb.FileDescriptorSet
}

func (c *collected) add(q *reflection.ServerReflectionRequest) error {
	answer, err := c.ask(q)
	if err != nil {
		return err
	}
	if e := answer.GetErrorResponse(); e != nil {
		return status.Error(codes.Code(e.GetErrorCode()), e.GetErrorMessage())
	}
	var imports []string
	for _, raw := range answer.GetFileDescriptorResponse().GetFileDescriptorProto() {
		var f descriptorpb.FileDescriptorProto
		if err := proto.Unmarshal(raw, &f); err != nil {
			return fmt.Errorf("decode a file descriptor: %w", err)
		}
		if !c.known[f.GetName()] {
			c.known[f.GetName()] = true
			c.set.File = append(c.set.File, &f)
			imports = append(imports, f.GetDependency()...)
		}
	}
	for _, name := range imports { // servers may send them along or not
		if c.known[name] {
			continue
		}
		if err := c.add(&reflection.ServerReflectionRequest{MessageRequest: &reflection.ServerReflectionRequest_FileByFilename{FileByFilename: name}}); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
