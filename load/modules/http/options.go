package k6http

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/metachaos/metachaos/internal/suggest"
	"github.com/metachaos/metachaos/load/script"
)

// options are those of a script that HTTP obeys.
type options struct {
	MaxRedirects          int
	Batch, BatchPerHost   int // requests at once; 0 is no limit
	UserAgent             string
	Throw                 bool
	DiscardResponseBodies bool
	NoConnectionReuse     bool
	NoVUConnectionReuse   bool
	NoCookiesReset        bool
	InsecureSkipTLSVerify bool
	HTTPDebug             string // empty, headers or full
	RPS                   float64
	Hosts                 map[string]string
	BlockHostnames        []string
	BlacklistIPs          []netip.Prefix
	DNS                   dnsOptions
	LocalIPs              []addressRange
	TLS                   tlsOptions
}

// CheckOptions reports options of a script that "k6/http" cannot obey.
func CheckOptions(o *script.Options) error {
	_, err := newCommon(o)
	return err
}

// readOptions reads the consolidated options of a script; nil has none set.
func readOptions(o *script.Options) (*options, error) {
	out := &options{MaxRedirects: 10, Batch: 20, BatchPerHost: 6, UserAgent: DefaultUserAgent,
		DNS: dnsOptions{TTL: 5 * time.Minute, Select: selectRandom, Policy: policyPreferIPv4}}
	if o == nil {
		return out, nil
	}
	var blacklist []string
	var localIPs string
	var debug any
	for _, f := range []struct {
		name string
		into any
	}{
		{"maxRedirects", &out.MaxRedirects}, {"batch", &out.Batch}, {"batchPerHost", &out.BatchPerHost},
		{"userAgent", &out.UserAgent}, {"throw", &out.Throw}, {"discardResponseBodies", &out.DiscardResponseBodies},
		{"noConnectionReuse", &out.NoConnectionReuse}, {"noVUConnectionReuse", &out.NoVUConnectionReuse},
		{"noCookiesReset", &out.NoCookiesReset}, {"insecureSkipTLSVerify", &out.InsecureSkipTLSVerify},
		{"httpDebug", &debug}, {"rps", &out.RPS}, {"hosts", &out.Hosts}, {"blockHostnames", &out.BlockHostnames},
		{"blacklistIPs", &blacklist}, {"dns", &out.DNS}, {"localIPs", &localIPs}, {"tlsAuth", &out.TLS.Auth},
		{"tlsVersion", &out.TLS.Versions}, {"tlsCipherSuites", &out.TLS.CipherSuites},
	} {
		raw, ok := o.All[f.name]
		if !ok {
			continue
		}
		if err := json.Unmarshal(raw, f.into); err != nil {
			return nil, fmt.Errorf("options.%s: %w", f.name, err)
		}
	}
	var err error
	if out.HTTPDebug, err = debugLevel(debug); err != nil {
		return nil, err
	}
	if out.BlacklistIPs, err = parsePrefixes(blacklist); err != nil {
		return nil, err
	}
	if out.LocalIPs, err = parseRanges(localIPs); err != nil {
		return nil, err
	}
	return out, checkHosts(out.Hosts, out.BlockHostnames)
}

// debugLevel reads httpDebug: true, "headers" or "full".
func debugLevel(v any) (string, error) {
	switch v {
	case nil, false, "", "false":
		return "", nil
	case true, "true", debugHeaders:
		return debugHeaders, nil
	case debugFull:
		return debugFull, nil
	}
	return "", fmt.Errorf("options.httpDebug: want headers or full, got %v", v)
}

func parsePrefixes(texts []string) ([]netip.Prefix, error) {
	var all []netip.Prefix
	for _, text := range texts {
		p, err := parsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("options.blacklistIPs: %q: want an address or a range such as 10.0.0.0/8", text)
		}
		all = append(all, p)
	}
	return all, nil
}

func parsePrefix(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		return addr.Prefix(addr.BitLen())
	}
	return netip.ParsePrefix(text)
}

func checkHosts(hosts map[string]string, blocked []string) error {
	for name, to := range hosts {
		if !isPattern(name) {
			return fmt.Errorf("options.hosts: %q: want a name, a name with a port, or one that starts with *", name)
		}
		if _, err := netip.ParseAddrPort(to); err == nil {
			continue
		}
		if _, err := netip.ParseAddr(strings.Trim(to, "[]")); err != nil {
			return fmt.Errorf("options.hosts: %s: want an address with or without a port, such as 10.0.0.1:8080, got %q", name, to)
		}
	}
	for _, name := range blocked {
		if !isPattern(name) {
			return fmt.Errorf("options.blockHostnames: %q: want a name or one that starts with *", name)
		}
	}
	return nil
}

// isPattern reports whether a name has a * at its start at most.
func isPattern(name string) bool {
	return name != "" && !strings.Contains(strings.TrimPrefix(name, "*"), "*")
}

// oneOf wants a value among those known.
func oneOf(where, value string, known ...string) error {
	if slices.Contains(known, value) {
		return nil
	}
	return fmt.Errorf("%s: unknown %q; %s", where, value, suggest.Name(value, known))
}
