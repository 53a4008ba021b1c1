package k6http

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

func addrs(texts ...string) []netip.Addr {
	var all []netip.Addr
	for _, text := range texts {
		all = append(all, netip.MustParseAddr(text))
	}
	return all
}

func TestChoose(t *testing.T) {
	both := addrs("::1", "10.0.0.1", "::ffff:10.0.0.2")
	for _, c := range []struct {
		policy string
		all    []netip.Addr
		want   []netip.Addr
	}{
		{policyPreferIPv4, both, addrs("10.0.0.1", "10.0.0.2")},
		{policyPreferIPv4, addrs("::1"), addrs("::1")},
		{policyPreferIPv6, both, addrs("::1")},
		{policyPreferIPv6, addrs("10.0.0.1"), addrs("10.0.0.1")},
		{policyOnlyIPv4, addrs("::1"), nil},
		{policyOnlyIPv6, both, addrs("::1")},
		{policyAny, both, addrs("10.0.0.1", "10.0.0.2", "::1")},
	} {
		if got := choose(c.policy, c.all); !slices.Equal(got, c.want) {
			t.Errorf("choose(%s, %v) = %v, want %v", c.policy, c.all, got, c.want)
		}
	}
}

func TestResolverRemembers(t *testing.T) {
	start := time.Unix(0, 0)
	for _, c := range []struct {
		ttl  time.Duration
		want string // how often it was asked by then
	}{{0, "1 2 3"}, {time.Minute, "1 1 2"}, {-1, "1 1 1"}} {
		asked := 0
		r := newResolver(dnsOptions{TTL: c.ttl, Select: selectFirst})
		r.lookup = func(context.Context, string) ([]netip.Addr, error) {
			asked++
			return addrs("10.0.0.1"), nil
		}
		var got []string
		for _, at := range []time.Duration{0, 30 * time.Second, time.Hour} {
			if _, err := r.resolve(t.Context(), "Name.test.", start.Add(at)); err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(asked))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("ttl %v: asked %v times, want %s", c.ttl, got, c.want)
		}
	}
}

func TestResolverSelects(t *testing.T) {
	for selection, want := range map[string]string{selectFirst: "111111", selectRoundRobin: "123123"} {
		r := newResolver(dnsOptions{TTL: -1, Select: selection})
		r.lookup = func(context.Context, string) ([]netip.Addr, error) {
			return addrs("10.0.0.1", "10.0.0.2", "10.0.0.3"), nil
		}
		got := ""
		for range 6 {
			a, err := r.resolve(t.Context(), "a", time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			got += a.String()[len(a.String())-1:]
		}
		if got != want {
			t.Errorf("%s: %s, want %s", selection, got, want)
		}
	}
	r := newResolver(dnsOptions{Select: selectRandom, Policy: policyOnlyIPv6})
	r.lookup = func(context.Context, string) ([]netip.Addr, error) { return addrs("10.0.0.1"), nil }
	if _, err := r.resolve(t.Context(), "a", time.Time{}); err == nil || !strings.Contains(err.Error(), policyOnlyIPv6) {
		t.Errorf("no address is left: %v", err)
	}
}

func TestLocalIPs(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "invalid IP",
		"10.0.0.1":                          "10.0.0.1 10.0.0.1",
		"10.0.0.1-10.0.0.3":                 "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.1",
		"10.0.0.0/30, 10.1.0.0/31,fe80::/0": "10.0.0.1 10.0.0.2 10.1.0.0 10.1.0.1 ::",
		"10.0.0.255-10.0.1.0":               "10.0.0.255 10.0.1.0 10.0.0.255",
	} {
		ranges, err := parseRanges(text)
		if err != nil {
			t.Fatal(err)
		}
		for i, w := range strings.Split(want, " IP")[:1] {
			for n, one := range strings.Fields(w) {
				if one == "invalid" {
					one = "invalid IP"
				}
				if got := localIP(ranges, i+n+1).String(); got != one {
					t.Errorf("VU %d of %q calls from %s, want %s", n+1, text, got, one)
				}
			}
		}
	}
	for _, bad := range []string{"x", "10.0.0.2-10.0.0.1", "10.0.0.1-::1", "10.0.0.1/33", "a-b"} {
		if _, err := parseRanges(bad); err == nil {
			t.Errorf("%q is no range", bad)
		}
	}
}
