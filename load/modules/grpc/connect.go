package k6grpc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/grafana/sobek"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/metachaos/metachaos/load/modules/wire"
)

// connectTimeout is how long connecting may take unless the script says.
const connectTimeout = time.Minute

// connection is an open connection.
type connection struct {
	*grpc.ClientConn
	address string
	dialer  *wire.Dialer
}

// connectParams are what scripts say about a connection.
type connectParams struct {
	plaintext, reflect bool
	reflectMetadata    metadata.MD
	timeout            time.Duration
	authority          string
	maxReceive         int
	maxSend            int
	tls                *tls.Config // nil unless given
}

func readConnectParams(v sobek.Value) (p connectParams, err error) {
	p.timeout = connectTimeout
	if wire.Absent(v) {
		return p, nil
	}
	o, ok := v.(*sobek.Object)
	if !ok {
		return p, fmt.Errorf("params: want an object, got %s", v)
	}
	for _, key := range o.Keys() {
		value := o.Get(key)
		if wire.Absent(value) {
			continue
		}
		switch key {
		case "plaintext":
			p.plaintext = value.ToBoolean()
		case "reflect":
			p.reflect = value.ToBoolean()
		case "reflectMetadata":
			p.reflectMetadata, err = readMetadata("params.reflectMetadata", value)
		case "timeout":
			p.timeout, err = wire.Duration(value)
		case "authority":
			p.authority = value.String()
		case "maxReceiveSize":
			p.maxReceive, err = size(value)
		case "maxSendSize":
			p.maxSend, err = size(value)
		case "tls":
			p.tls, err = readTLS(value)
		default:
			err = errors.New("there is no such parameter; there are plaintext, reflect, reflectMetadata, timeout, authority, maxReceiveSize, maxSendSize and tls")
		}
		if err != nil {
			return p, fmt.Errorf("params.%s: %w", key, err)
		}
	}
	return p, nil
}

func size(v sobek.Value) (int, error) {
	n := v.ToInteger()
	if n < 0 {
		return 0, fmt.Errorf("want a number of bytes, got %s", v)
	}
	return int(n), nil
}

// connect opens the connection: connect("host:port", params?).
func (c *client) connect(call sobek.FunctionCall) sobek.Value {
	if c.vu.host.InInit() {
		c.vu.throw("client.connect: connections cannot be opened in init code")
	}
	address := call.Argument(0).String()
	if !isHostPort(address) {
		c.vu.throw("client.connect: %q: want host:port", address)
	}
	p, err := readConnectParams(call.Argument(1))
	if err != nil {
		c.vu.throw("client.connect: %w", err)
	}
	options, err := wire.ReadOptions(c.vu.host.Options())
	if err != nil {
		c.vu.throw("client.connect: %w", err)
	}
	c.disconnect()
	ctx, cancel := context.WithTimeout(c.vu.host.Context(), p.timeout)
	defer cancel()
	conn, err := dial(ctx, address, p, options)
	if err == nil {
		c.conn = conn
		c.vu.connected[c] = true
		if p.reflect {
			err = c.reflect(metadata.NewOutgoingContext(ctx, p.reflectMetadata))
		}
	}
	if err != nil {
		c.disconnect()
		c.vu.throw("client.connect: %s: %w", address, err)
	}
	return c.vu.host.Runtime().ToValue(true)
}

func isHostPort(address string) bool {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	return err == nil
}

func (c *client) reflect(ctx context.Context) error {
	files, err := reflect(ctx, c.conn)
	if err != nil {
		return err
	}
	return c.schema.add(files...)
}

// dial connects and waits until the connection stands. It fails at the first
// failure: a server that is not there is news to the script.
func dial(ctx context.Context, address string, p connectParams, options wire.Options) (*connection, error) {
	c := &connection{address: address, dialer: &wire.Dialer{Options: options}}
	var why lastError
	transport := insecure.NewCredentials()
	if !p.plaintext {
		config := p.tls
		if config == nil {
			config = options.TLS()
		}
		config.InsecureSkipVerify = options.SkipTLSVerify
		transport = &tracedTLS{credentials.NewTLS(config), &why}
	}
	dialOptions := []grpc.DialOption{grpc.WithTransportCredentials(transport),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			conn, err := c.dialer.DialContext(ctx, "tcp", address)
			why.set(err)
			return conn, err
		})}
	if options.UserAgent != "" {
		dialOptions = append(dialOptions, grpc.WithUserAgent(options.UserAgent))
	}
	if p.authority != "" {
		dialOptions = append(dialOptions, grpc.WithAuthority(p.authority))
	}
	if p.maxReceive > 0 {
		dialOptions = append(dialOptions, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(p.maxReceive)))
	}
	if p.maxSend > 0 {
		dialOptions = append(dialOptions, grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(p.maxSend)))
	}
	// passthrough leaves the resolving to our dialer, with its option hosts
	conn, err := grpc.NewClient("passthrough:///"+address, dialOptions...)
	if err != nil {
		return nil, err
	}
	c.ClientConn = conn
	if err := c.await(ctx, &why); err != nil {
		_ = conn.Close() // it never stood
		return nil, err
	}
	return c, nil
}

func (c *connection) await(ctx context.Context, why *lastError) error {
	c.Connect()
	for {
		state := c.GetState()
		switch state {
		case connectivity.Ready:
			return nil
		case connectivity.TransientFailure, connectivity.Shutdown:
			if err := why.get(); err != nil {
				return err
			}
			return errors.New("the server does not speak gRPC on this port")
		}
		if !c.WaitForStateChange(ctx, state) {
			if err := why.get(); err != nil {
				return fmt.Errorf("no connection in time: %w", err)
			}
			return fmt.Errorf("no connection in time: %w", context.Cause(ctx))
		}
	}
}

// lastError is the reason of the last failed attempt, which grpc itself tells
// to calls only.
type lastError struct {
	mu  sync.Mutex
	err error
}

func (l *lastError) set(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.err = err
	}
}

func (l *lastError) get() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// tracedTLS notes why a handshake failed.
type tracedTLS struct {
	credentials.TransportCredentials
	why *lastError
}

func (t *tracedTLS) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := t.TransportCredentials.ClientHandshake(ctx, authority, raw)
	t.why.set(err)
	return conn, info, err
}

func (t *tracedTLS) Clone() credentials.TransportCredentials {
	return &tracedTLS{t.TransportCredentials.Clone(), t.why}
}

// close closes the connection; calls that are under way end as cancelled.
func (c *client) close(sobek.FunctionCall) sobek.Value {
	c.disconnect()
	return sobek.Undefined()
}

func (c *client) disconnect() {
	if c.conn != nil {
		_ = c.conn.Close() // what it was about is over
		wire.Traffic(c.vu.host, c.conn.dialer, c.vu.host.Tags())
		c.conn = nil
		delete(c.vu.connected, c)
	}
}
