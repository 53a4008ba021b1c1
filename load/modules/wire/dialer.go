package wire

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/metachaos/metachaos/load/script"
)

// Options are the options of a script that connections obey.
type Options struct {
	Hosts          map[string]string `json:"hosts"` // name, name:port or *.name → address
	BlockHostnames []string          `json:"blockHostnames"`
	BlacklistIPs   []string          `json:"blacklistIPs"`
	SkipTLSVerify  bool              `json:"insecureSkipTLSVerify"`
	UserAgent      string            `json:"userAgent"`
	Throw          bool              `json:"throw"`
}

// ReadOptions reads them from the consolidated options of a script; nil has
// none set.
func ReadOptions(o *script.Options) (Options, error) {
	var out Options
	if o == nil {
		return out, nil
	}
	text, err := json.Marshal(o.All)
	if err != nil {
		return out, fmt.Errorf("encode options: %w", err)
	}
	if err := json.Unmarshal(text, &out); err != nil {
		return out, fmt.Errorf("options: %w", err)
	}
	for _, cidr := range out.BlacklistIPs {
		if _, err := parsePrefix(cidr); err != nil {
			return out, fmt.Errorf("options.blacklistIPs: %w", err)
		}
	}
	return out, nil
}

// TLS returns the configuration of a client under the options.
func (o Options) TLS() *tls.Config {
	return &tls.Config{InsecureSkipVerify: o.SkipTLSVerify} //nolint:gosec // the script's own choice
}

// Dialer opens connections under the options of a script and counts what goes
// over them. It is safe for concurrent use.
type Dialer struct {
	Options        Options
	sent, received atomic.Int64
}

// DialContext connects to host:port. Its errors name the option that is in
// the way.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	for _, pattern := range d.Options.BlockHostnames {
		if matchesHost(pattern, host) {
			return nil, fmt.Errorf("dial %s: the option blockHostnames blocks %s", address, pattern)
		}
	}
	target := d.Options.redirect(host, port)
	dialer := net.Dialer{ControlContext: d.refuseBlacklisted}
	conn, err := dialer.DialContext(ctx, network, target)
	if err != nil {
		return nil, err
	}
	return &countedConn{conn, d}, nil
}

// Take returns how many bytes went each way since the last call.
func (d *Dialer) Take() (sent, received int64) { return d.sent.Swap(0), d.received.Swap(0) }

// redirect applies the option hosts; the longest name wins.
func (o Options) redirect(host, port string) string {
	address := net.JoinHostPort(host, port)
	best, to := "", ""
	for pattern, target := range o.Hosts {
		if pattern == address {
			best, to = pattern, target
			break
		}
		if matchesHost(pattern, host) && len(pattern) > len(best) {
			best, to = pattern, target
		}
	}
	if best == "" {
		return address
	}
	if _, _, err := net.SplitHostPort(to); err == nil {
		return to
	}
	return net.JoinHostPort(strings.Trim(to, "[]"), port)
}

func matchesHost(pattern, host string) bool {
	if suffix, ok := strings.CutPrefix(pattern, "*"); ok {
		return strings.HasSuffix(strings.ToLower(host), strings.ToLower(suffix))
	}
	return strings.EqualFold(pattern, host)
}

// refuseBlacklisted looks at the address that a name was resolved to.
func (d *Dialer) refuseBlacklisted(_ context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil //nolint:nilerr // a socket that is not of an IP network has no address to refuse
	}
	for _, cidr := range d.Options.BlacklistIPs {
		prefix, err := parsePrefix(cidr)
		if err == nil && prefix.Contains(at.Addr().Unmap()) {
			return fmt.Errorf("the option blacklistIPs blocks %s (%s)", at.Addr(), cidr)
		}
	}
	return nil
}

func parsePrefix(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		return addr.Prefix(addr.BitLen())
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return p, fmt.Errorf("%q: want an address or a range such as 10.0.0.0/8", text)
	}
	return p, nil
}

type countedConn struct {
	net.Conn
	d *Dialer
}

func (c *countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.d.received.Add(int64(n))
	return n, err
}

func (c *countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.d.sent.Add(int64(n))
	return n, err
}
