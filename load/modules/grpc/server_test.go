package k6grpc

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"
)

// echoProto is what the test server serves; deps are in a file of their own.
var echoProto = map[string]string{
	"protos/shop/echo.proto": `syntax = "proto3";
		package shop;
		import "shop/types.proto";
		import "google/protobuf/timestamp.proto";
		message Note { string text = 1; int64 big = 2; Kind kind = 3; bytes raw = 4; repeated string list_of = 5; google.protobuf.Timestamp at = 6; }
		service Echo {
			rpc Say(Note) returns (Note);
			rpc Count(Note) returns (stream Note);
			rpc Sum(stream Note) returns (Note);
			rpc Chat(stream Note) returns (stream Note);
		}`,
	"protos/shop/types.proto": `syntax = "proto3"; package shop; enum Kind { NONE = 0; GOOD = 1; }`,
}

// echoServer answers from the descriptors alone.
type echoServer struct {
	note protoreflect.MessageDescriptor
}

// text returns the field text of a message.
func (s *echoServer) text(m *dynamicpb.Message) string {
	return m.Get(s.note.Fields().ByName("text")).String()
}

func (s *echoServer) of(text string) *dynamicpb.Message {
	m := dynamicpb.NewMessage(s.note)
	m.Set(s.note.Fields().ByName("text"), protoreflect.ValueOfString(text))
	return m
}

func (s *echoServer) handle(_ any, stream grpc.ServerStream) error {
	full, _ := grpc.MethodFromServerStream(stream)
	md, _ := metadata.FromIncomingContext(stream.Context())
	_ = stream.SetHeader(metadata.Pairs("x-back", strings.Join(md.Get("x-mine"), ","), "x-raw-bin", strings.Join(md.Get("x-raw-bin"), "")))
	stream.SetTrailer(metadata.Pairs("x-tail", "end"))
	var all []string
	for {
		m := dynamicpb.NewMessage(s.note)
		err := stream.RecvMsg(m)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		all = append(all, s.text(m))
		switch {
		case strings.HasSuffix(full, "/Chat"):
			if s.text(m) == "fail" {
				return status.Error(codes.DataLoss, "lost it")
			}
			if err := stream.SendMsg(s.of("re:" + s.text(m))); err != nil {
				return err
			}
		case strings.HasSuffix(full, "/Say"):
			return s.say(stream, m)
		case strings.HasSuffix(full, "/Count"):
			for _, word := range strings.Fields(s.text(m)) {
				if err := stream.SendMsg(s.of(word)); err != nil {
					return err
				}
			}
			return nil
		}
	}
	if strings.HasSuffix(full, "/Sum") {
		return stream.SendMsg(s.of(strings.Join(all, "+")))
	}
	return nil
}

func (s *echoServer) say(stream grpc.ServerStream, m *dynamicpb.Message) error {
	switch s.text(m) {
	case "refuse":
		st, err := status.New(codes.PermissionDenied, "no entry").WithDetails(&errdetails.ErrorInfo{Reason: "CLOSED"})
		if err != nil {
			return err
		}
		return st.Err()
	case "slow":
		<-stream.Context().Done()
		return stream.Context().Err()
	case "large":
		return stream.SendMsg(s.of(strings.Repeat("x", 10_000)))
	}
	return stream.SendMsg(m)
}

// compiled compiles the protos of the tests.
func compiled(t testing.TB) []protoreflect.FileDescriptor {
	t.Helper()
	read := func(name string) ([]byte, error) {
		if text, ok := echoProto[name]; ok {
			return []byte(text), nil
		}
		return nil, errors.New("there is no file " + name)
	}
	files, err := compile(t.Context(), read, []string{"protos"}, []string{"shop/echo.proto"})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// descriptors looks into one registry and then into that of Go's own types.
type descriptors struct{ first *protoregistry.Files }

var _ protodesc.Resolver = descriptors{}

func (d descriptors) FindFileByPath(path string) (protoreflect.FileDescriptor, error) {
	if f, err := d.first.FindFileByPath(path); err == nil {
		return f, nil
	}
	return protoregistry.GlobalFiles.FindFileByPath(path)
}

func (d descriptors) FindDescriptorByName(name protoreflect.FullName) (protoreflect.Descriptor, error) {
	if f, err := d.first.FindDescriptorByName(name); err == nil {
		return f, nil
	}
	return protoregistry.GlobalFiles.FindDescriptorByName(name)
}

// serve starts a server with health, and reflection of the version that is
// asked for, on a free port.
func serve(t *testing.T, reflectionVersion string, options ...grpc.ServerOption) (address string) {
	t.Helper()
	files := compiled(t)
	var all schema
	if err := all.add(files...); err != nil {
		t.Fatal(err)
	}
	echo := &echoServer{note: files[0].Messages().ByName("Note")}
	s := grpc.NewServer(options...)
	hs := health.NewServer()
	hs.SetServingStatus("down", healthpb.HealthCheckResponse_NOT_SERVING)
	healthpb.RegisterHealthServer(s, hs)
	service := files[0].Services().Get(0)
	s.RegisterService(&grpc.ServiceDesc{ServiceName: string(service.FullName()), Metadata: files[0].Path(),
		Streams: streamsOf(service, echo.handle)}, nil)
	reflecting := reflection.ServerOptions{Services: s, DescriptorResolver: descriptors{all.files}}
	switch reflectionVersion {
	case "v1":
		grpc_reflection_v1.RegisterServerReflectionServer(s, reflection.NewServerV1(reflecting))
	case "v1alpha":
		grpc_reflection_v1alpha.RegisterServerReflectionServer(s, reflection.NewServer(reflecting))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(listener) // ends with Stop
	}()
	t.Cleanup(func() { s.Stop(); <-done })
	return listener.Addr().String()
}

func streamsOf(service protoreflect.ServiceDescriptor, handle grpc.StreamHandler) (all []grpc.StreamDesc) {
	for i := range service.Methods().Len() {
		m := service.Methods().Get(i)
		all = append(all, grpc.StreamDesc{StreamName: string(m.Name()), Handler: handle, ServerStreams: true, ClientStreams: true})
	}
	return all
}

// certificate makes a certificate for 127.0.0.1 that signs itself.
func certificate(t *testing.T) (pair tls.Certificate, certPEM, keyPEM string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	keyPEM = string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}))
	if pair, err = tls.X509KeyPair([]byte(certPEM), []byte(keyPEM)); err != nil {
		t.Fatal(err)
	}
	return pair, certPEM, keyPEM
}

func withTLS(pair tls.Certificate, clients *x509.CertPool) grpc.ServerOption {
	c := &tls.Config{Certificates: []tls.Certificate{pair}}
	if clients != nil {
		c.ClientCAs, c.ClientAuth = clients, tls.RequireAndVerifyClientCert
	}
	return grpc.Creds(credentials.NewTLS(c))
}
