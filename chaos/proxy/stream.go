package proxy

import (
	"context"
	"errors"
	"io"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// frame is one message as bytes.
type frame struct{ bytes []byte }

// rawCodec passes messages through as they are.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*frame)
	if !ok {
		return nil, errors.New("marshal: not a raw message")
	}
	return mem.BufferSlice{mem.SliceBuffer(f.bytes)}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return errors.New("unmarshal: not a raw message")
	}
	f.bytes = data.Materialize()
	return nil
}

// handle forwards one stream. It ends when the server ends the stream or the
// client goes away.
func (p *Proxy) handle(_ any, down grpc.ServerStream) error {
	method, ok := grpc.MethodFromServerStream(down)
	if !ok {
		return status.Error(codes.Internal, "proxy: a stream without a method")
	}
	p.streams.Add(1)
	defer p.streams.Add(-1)
	// The incoming context carries the client's deadline on to the server, and
	// ends with the client.
	ctx, cancel := context.WithCancel(down.Context())
	defer cancel()
	in, _ := metadata.FromIncomingContext(ctx)
	ctx = metadata.NewOutgoingContext(ctx, in)
	up, err := p.backend.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method, callOptions(in)...)
	if err != nil {
		return err
	}
	id := p.lastID.Add(1)
	p.pumps.Go(func() {
		// What the client sends has no error of its own to report: when the
		// stream broke, receiving from the server says why.
		err := p.pump(&path{proxy: p, direction: ToServer, method: method, stream: id}, down.RecvMsg, up.SendMsg)
		switch {
		case errors.Is(err, io.EOF):
			_ = up.CloseSend()
		case !errors.Is(err, errEnded):
			cancel() // what the client sends cannot be read: let the server know
		}
	})
	if header, err := up.Header(); err == nil && header != nil { // nil: the answer is trailers alone
		if err := down.SendHeader(header); err != nil {
			return err
		}
	}
	err = p.pump(&path{proxy: p, direction: ToClient, method: method, stream: id}, up.RecvMsg, down.SendMsg)
	down.SetTrailer(up.Trailer())
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// callOptions keeps the content subtype that the client speaks.
func callOptions(in metadata.MD) []grpc.CallOption {
	options := []grpc.CallOption{grpc.ForceCodecV2(rawCodec{})}
	for _, contentType := range in.Get("content-type") {
		if subtype, ok := strings.CutPrefix(contentType, "application/grpc+"); ok {
			options = append(options, grpc.CallContentSubtype(subtype))
		}
	}
	return options
}

// pump moves messages until receive fails (io.EOF when the sender is done) or
// send does. A send to a server that has ended the stream fails with io.EOF
// too; it is reported as something else, since the sender is not done.
func (p *Proxy) pump(way *path, receive, send func(any) error) error {
	m := p.meter(way.direction)
	for {
		var f frame
		if err := receive(&f); err != nil {
			return err
		}
		m.received.Add(1)
		if way.drops(f.bytes) {
			m.dropped.Add(1)
			continue
		}
		if err := send(&f); errors.Is(err, io.EOF) {
			return errEnded
		} else if err != nil {
			return err
		}
		m.sent.Add(1)
	}
}

var errEnded = errors.New("the receiver has ended the stream")
