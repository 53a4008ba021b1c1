package proxy

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	methodEcho  = "/test.Toy/Echo"
	methodCount = "/test.Toy/Watch"
	methodFail  = "/test.Toy/Fail"
	methodHang  = "/test.Toy/Hang"
	methodGreet = "/test.Toy/Greet"
)

// toy is a real gRPC server whose handlers are plain stream functions.
func toy(streams map[string]grpc.StreamHandler) *grpc.ServiceDesc {
	d := &grpc.ServiceDesc{ServiceName: "test.Toy", HandlerType: (*any)(nil)}
	for name, h := range streams {
		d.Streams = append(d.Streams, grpc.StreamDesc{StreamName: name, Handler: h, ServerStreams: true, ClientStreams: true})
	}
	return d
}

func toyHandlers() map[string]grpc.StreamHandler {
	return map[string]grpc.StreamHandler{
		"Echo": func(_ any, s grpc.ServerStream) error { // all that comes, until half-close
			for {
				var m wrapperspb.BytesValue
				if err := s.RecvMsg(&m); errors.Is(err, io.EOF) {
					return nil
				} else if err != nil {
					return err
				}
				if err := s.SendMsg(&m); err != nil {
					return err
				}
			}
		},
		"Watch": func(_ any, s grpc.ServerStream) error { // n messages for one request
			var n wrapperspb.UInt64Value
			if err := s.RecvMsg(&n); err != nil {
				return err
			}
			for i := range n.Value {
				if err := s.SendMsg(wrapperspb.Bytes(payload(i))); err != nil {
					return err
				}
			}
			return nil
		},
		"Fail": func(_ any, s grpc.ServerStream) error {
			in, _ := metadata.FromIncomingContext(s.Context())
			deadline, _ := s.Context().Deadline()
			s.SetTrailer(metadata.Pairs("saw", strings.Join(in.Get("who"), ","), "bytes-bin", "\x00\xff",
				"left", time.Until(deadline).Round(time.Minute).String()))
			st, err := status.New(codes.FailedPrecondition, "no: 100 %").WithDetails(durationpb.New(time.Second))
			if err != nil {
				return err
			}
			return st.Err()
		},
		"Greet": func(_ any, s grpc.ServerStream) error { // a header, and then silence until half-close
			if err := s.SendHeader(metadata.Pairs("hello", "there")); err != nil {
				return err
			}
			for s.RecvMsg(new(wrapperspb.BytesValue)) == nil {
			}
			return nil
		},
		"Hang": func(_ any, s grpc.ServerStream) error {
			<-s.Context().Done()
			return s.Context().Err()
		},
	}
}

// payload is a message body that tells its number and is of varying length.
func payload(i uint64) []byte {
	b := binary.BigEndian.AppendUint64(nil, i)
	dice := rand.New(rand.NewPCG(i, 1))
	for range dice.IntN(200) {
		b = append(b, byte(dice.Uint32()))
	}
	return b
}

func serve(t *testing.T, register func(*grpc.Server)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.WaitForHandlers(true))
	register(server)
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Stop(); <-done })
	return listener.Addr().String()
}

// through returns a proxy to a toy server, and a connection through it.
func through(t *testing.T) (*Proxy, *grpc.ClientConn) {
	t.Helper()
	addr := serve(t, func(s *grpc.Server) { s.RegisterService(toy(toyHandlers()), nil) })
	p, err := Listen(t.Context(), Config{Backend: addr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	conn, err := grpc.NewClient("passthrough:///"+p.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return p, conn
}

func open(ctx context.Context, t *testing.T, conn *grpc.ClientConn, method string, opts ...grpc.CallOption) grpc.ClientStream {
	t.Helper()
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// watch asks for n messages and returns their numbers; it checks the bytes.
func watch(t *testing.T, conn *grpc.ClientConn, n uint64) []uint64 {
	t.Helper()
	s := open(t.Context(), t, conn, methodCount)
	if err := s.SendMsg(wrapperspb.UInt64(n)); err != nil {
		t.Fatal(err)
	}
	if err := s.CloseSend(); err != nil {
		t.Fatal(err)
	}
	var got []uint64
	for {
		var m wrapperspb.BytesValue
		if err := s.RecvMsg(&m); errors.Is(err, io.EOF) {
			return got
		} else if err != nil {
			t.Fatal(err)
		}
		i := binary.BigEndian.Uint64(m.Value)
		if !bytes.Equal(m.Value, payload(i)) {
			t.Fatalf("message %d came changed", i)
		}
		got = append(got, i)
	}
}

func numbers(n uint64, keep func(uint64) bool) []uint64 {
	var out []uint64
	for i := range n {
		if keep(i) {
			out = append(out, i)
		}
	}
	return out
}

func TestProxyDropsExactlyWhatIsSelected(t *testing.T) {
	const n = 5000
	// The first stream's fate, worked out apart from the proxy.
	dice := rand.New(rand.NewPCG(7, 1))
	tests := []struct {
		name string
		rule Rule
		keep func(uint64) bool
	}{
		{"none", Rule{Method: "Watch", Share: 0}, func(uint64) bool { return true }},
		{"all", Rule{Method: "Watch", Share: 1}, func(uint64) bool { return false }},
		{"a seeded third", Rule{Share: 0.3, Seed: 7}, func(uint64) bool { return dice.Float64() >= 0.3 }},
		{"the first ten", Rule{Method: methodCount, Share: 1, Count: 10}, func(i uint64) bool { return i >= 10 }},
		{"another method", Rule{Method: "Echo", Share: 1}, func(uint64) bool { return true }},
		{"part of a name is no name", Rule{Method: "atch", Share: 1}, func(uint64) bool { return true }},
		{"but the even", Rule{Share: 1, Keep: func(_ string, m []byte) bool { return m[len(m)-1]&1 == 0 }},
			func(i uint64) bool { p := payload(i); return p[len(p)-1]&1 == 0 }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, conn := through(t)
			tt.rule.Direction = ToClient
			armed, err := p.Arm(tt.rule)
			if err != nil {
				t.Fatal(err)
			}
			want := numbers(n, tt.keep)
			got := watch(t, conn, n)
			if !slices.Equal(got, want) {
				t.Fatalf("%d messages came, want %d: first %v, want %v", len(got), len(want), head(got), head(want))
			}
			lost := uint64(n - len(want))
			if c := p.Counts(ToClient); c != (Counts{Received: n, Dropped: lost, Sent: uint64(len(want))}) {
				t.Errorf("counts to client: %+v", c)
			}
			if c := p.Counts(ToServer); c != (Counts{Received: 1, Sent: 1}) {
				t.Errorf("counts to server: %+v", c)
			}
			if _, dropped := armed.Counts(); dropped != lost {
				t.Errorf("the rule dropped %d, want %d", dropped, lost)
			}
			armed.Disarm()
			armed.Disarm()
			if got := watch(t, conn, 50); len(got) != 50 {
				t.Errorf("after disarming %d of 50 came", len(got))
			}
		})
	}
}

func head(ids []uint64) []uint64 { return ids[:min(10, len(ids))] }

func TestProxyDropsTowardsTheServer(t *testing.T) {
	t.Run("thousands", func(t *testing.T) { dropTowardsTheServer(t, 3000) })
	t.Run("compressed", func(t *testing.T) { dropTowardsTheServer(t, 100, grpc.UseCompressor(gzip.Name)) })
}

func dropTowardsTheServer(t *testing.T, n uint64, opts ...grpc.CallOption) {
	t.Helper()
	p, conn := through(t)
	armed, err := p.Arm(Rule{Direction: ToServer, Share: 0.5, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	s := open(t.Context(), t, conn, methodEcho, opts...)
	sent := make(chan error, 1)
	go func() {
		for i := range n {
			if err := s.SendMsg(wrapperspb.Bytes(payload(i))); err != nil {
				sent <- err
				return
			}
		}
		sent <- s.CloseSend()
	}()
	last, count := int64(-1), uint64(0)
	for {
		var m wrapperspb.BytesValue
		if err := s.RecvMsg(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		i := binary.BigEndian.Uint64(m.Value)
		if !bytes.Equal(m.Value, payload(i)) || int64(i) <= last {
			t.Fatalf("message %d after %d: changed or out of order", i, last)
		}
		last, count = int64(i), count+1
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	seen, dropped := armed.Counts()
	if seen != n || dropped < n/3 || count != n-dropped {
		t.Errorf("seen %d, dropped %d, echoed %d of %d", seen, dropped, count, n)
	}
}

func TestProxyKeepsErrorsMetadataAndDeadline(t *testing.T) {
	_, conn := through(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, "who", "me", "who", "you")
	s := open(ctx, t, conn, methodFail)
	err := s.RecvMsg(new(wrapperspb.BytesValue))
	st := status.Convert(err)
	if st.Code() != codes.FailedPrecondition || st.Message() != "no: 100 %" || len(st.Details()) != 1 {
		t.Errorf("status %v with details %v", err, st.Details())
	} else if d, ok := st.Details()[0].(*durationpb.Duration); !ok || d.AsDuration() != time.Second {
		t.Errorf("details %v", st.Details())
	}
	trailer := s.Trailer()
	for key, want := range map[string]string{"saw": "me,you", "bytes-bin": "\x00\xff", "left": "10m0s"} {
		if got := trailer.Get(key); !slices.Equal(got, []string{want}) {
			t.Errorf("trailer %s is %q, want %q", key, got, want)
		}
	}
	err = open(t.Context(), t, conn, "/test.Toy/Nowhere").RecvMsg(new(wrapperspb.BytesValue))
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("an unknown method gave %v", err)
	}
}

func TestProxyPassesHeadersBeforeMessages(t *testing.T) {
	_, conn := through(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	s := open(ctx, t, conn, methodGreet)
	header, err := s.Header() // the server sends nothing else before the half-close
	if err != nil || !slices.Equal(header.Get("hello"), []string{"there"}) {
		t.Fatalf("header %v, %v", header, err)
	}
	if err := s.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if err := s.RecvMsg(new(wrapperspb.BytesValue)); !errors.Is(err, io.EOF) {
		t.Errorf("after the half-close: %v", err)
	}
}

func TestProxyCancelsWhatTheClientCancels(t *testing.T) {
	p, conn := through(t)
	ctx, cancel := context.WithCancel(t.Context())
	s := open(ctx, t, conn, methodHang)
	eventually(t, "the stream is open", func() bool { return p.Streams() == 1 })
	cancel()
	if err := s.RecvMsg(new(wrapperspb.BytesValue)); status.Code(err) != codes.Canceled {
		t.Errorf("error %v", err)
	}
	eventually(t, "the stream is gone", func() bool { return p.Streams() == 0 })
}

func TestProxyCloseBreaksStreams(t *testing.T) {
	p, conn := through(t)
	s := open(t.Context(), t, conn, methodHang)
	eventually(t, "the stream is open", func() bool { return p.Streams() == 1 })
	if err := errors.Join(p.Close(), p.Close()); err != nil {
		t.Fatal(err)
	}
	if err := s.RecvMsg(new(wrapperspb.BytesValue)); err == nil {
		t.Error("the stream lives on")
	}
	if c, err := net.Dial("tcp", p.Addr()); err == nil {
		_ = c.Close()
		t.Error("the closed proxy still listens")
	}
}

func TestProxyWithoutServer(t *testing.T) {
	p, err := Listen(t.Context(), Config{Backend: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	conn, err := grpc.NewClient("passthrough:///"+p.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	err = open(t.Context(), t, conn, methodEcho).RecvMsg(new(wrapperspb.BytesValue))
	if status.Code(err) != codes.Unavailable {
		t.Errorf("error %v, want unavailable", err)
	}
}

func TestArmRefusesBadRules(t *testing.T) {
	p, _ := through(t)
	for _, r := range []Rule{{Share: 1}, {Direction: ToClient, Share: 1.5}, {Direction: ToClient, Share: -1}} {
		if _, err := p.Arm(r); err == nil || !strings.Contains(err.Error(), "want") {
			t.Errorf("%+v: error %v", r, err)
		}
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("still not so: %s", what)
		}
	}
}
