package k6http

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"
)

// dialTimeout bounds how long connecting may take.
const dialTimeout = 30 * time.Second

// dialer opens connections under the options of a script. It is safe for
// concurrent use.
type dialer struct {
	common  *common
	from    netip.Addr // the local address; zero leaves it to the system
	traffic *traffic
}

// traffic counts bytes on the wire.
type traffic struct{ sent, received atomic.Int64 }

// take returns how many bytes went each way since the last call.
func (t *traffic) take() (sent, received int64) { return t.sent.Swap(0), t.received.Swap(0) }

// conn is a connection that knows its own history.
type conn struct {
	net.Conn
	traffic *traffic

	remote                                netip.AddrPort
	lookedUp                              time.Duration
	connecting, connected, tlsHandshaking time.Time
	secured                               time.Time // zero without TLS
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.traffic.received.Add(int64(n))
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.traffic.sent.Add(int64(n))
	return n, err
}

// dial connects to host:port. A refusal by an option is a [*blockedError].
func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cancelWithRequest(ctx, cancel)
	c, err := d.connect(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (d *dialer) connect(ctx context.Context, network, address string) (*conn, error) {
	start := time.Now()
	target, err := d.target(ctx, address, start)
	if err != nil {
		return nil, err
	}
	for _, p := range d.common.options.BlacklistIPs {
		if p.Contains(target.Addr()) {
			return nil, &blockedError{code: codeBlacklistedIP, what: target.Addr().String(), option: "blacklistIPs", pattern: p.String()}
		}
	}
	system := net.Dialer{Timeout: dialTimeout}
	if d.from.IsValid() {
		system.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(d.from, 0))
	}
	c := &conn{traffic: d.traffic, remote: target, connecting: time.Now()}
	c.lookedUp = c.connecting.Sub(start)
	if c.Conn, err = system.DialContext(ctx, network, target.String()); err != nil {
		return nil, err
	}
	c.connected = time.Now()
	return c, nil
}

// dialTLS connects to host:port and makes the connection secure.
func (d *dialer) dialTLS(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	cancelWithRequest(ctx, cancel)
	c, err := d.connect(ctx, network, address)
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	secure := tls.Client(c, d.common.tlsFor(host))
	c.tlsHandshaking = time.Now()
	if err := secure.HandshakeContext(ctx); err != nil {
		c.Close()
		return nil, &handshakeError{err}
	}
	c.secured = time.Now()
	return secure, nil
}

// requestDone is the key of a channel that is closed when the request that
// needs a connection ends. The Transport connects under a context that
// outlives the request and keeps only its values.
type requestDone struct{}

// cancelWithRequest calls cancel when the request of ctx ends before ctx does.
func cancelWithRequest(ctx context.Context, cancel context.CancelFunc) {
	done, ok := ctx.Value(requestDone{}).(<-chan struct{})
	if !ok {
		return
	}
	go func() {
		select {
		case <-done:
			cancel()
		case <-ctx.Done():
		}
	}()
}

// target applies the options blockHostnames, hosts and dns to an address.
func (d *dialer) target(ctx context.Context, address string, now time.Time) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("dial %s: %w", address, err)
	}
	o := d.common.options
	for _, pattern := range o.BlockHostnames {
		if matchesHost(pattern, host) {
			return netip.AddrPort{}, &blockedError{code: codeBlockedHostname, what: host, option: "blockHostnames", pattern: pattern}
		}
	}
	if to, ok := redirectHost(o.Hosts, host, port); ok {
		if at, err := netip.ParseAddrPort(to); err == nil {
			return at, nil
		}
		host = strings.Trim(to, "[]")
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		if addr, err = d.common.resolver.resolve(ctx, host, now); err != nil {
			return netip.AddrPort{}, err
		}
	}
	number, err := net.DefaultResolver.LookupPort(ctx, "tcp", port)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("dial %s: %w", address, err)
	}
	return netip.AddrPortFrom(addr.Unmap(), uint16(number)), nil
}

// redirectHost applies the option hosts: a name with its port before a name,
// and among patterns the longest.
func redirectHost(hosts map[string]string, host, port string) (to string, ok bool) {
	best := -1
	for pattern, target := range hosts {
		rank := len(pattern)
		switch {
		case strings.HasSuffix(pattern, ":"+port) && matchesHost(pattern, net.JoinHostPort(host, port)):
			rank += 1 << 20
		case !matchesHost(pattern, host):
			continue
		}
		if !strings.HasPrefix(pattern, "*") {
			rank += 1 << 21
		}
		if rank > best {
			best, to, ok = rank, target, true
		}
	}
	return to, ok
}

// matchesHost compares a name with a pattern, which may start with a *.
func matchesHost(pattern, host string) bool {
	if suffix, ok := strings.CutPrefix(pattern, "*"); ok {
		return strings.HasSuffix(strings.ToLower(host), strings.ToLower(suffix))
	}
	return strings.EqualFold(pattern, host)
}
