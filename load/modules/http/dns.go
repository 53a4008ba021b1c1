package k6http

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/metachaos/metachaos/load/script"
)

// dnsOptions is how names become addresses.
type dnsOptions struct {
	TTL    time.Duration // how long an answer is remembered; negative is for ever
	Select string
	Policy string
}

// Values of the option dns.
const (
	selectFirst      = "first"
	selectRandom     = "random"
	selectRoundRobin = "roundRobin"

	policyPreferIPv4 = "preferIPv4"
	policyPreferIPv6 = "preferIPv6"
	policyOnlyIPv4   = "onlyIPv4"
	policyOnlyIPv6   = "onlyIPv6"
	policyAny        = "any"
)

// UnmarshalJSON reads {ttl, select, policy} over what is there.
func (o *dnsOptions) UnmarshalJSON(text []byte) error {
	var f struct {
		TTL    any    `json:"ttl"`
		Select string `json:"select"`
		Policy string `json:"policy"`
	}
	if err := json.Unmarshal(text, &f); err != nil {
		return err
	}
	switch ttl := f.TTL.(type) {
	case nil:
	case string:
		if ttl == "inf" {
			o.TTL = -1
		} else if d, err := script.ParseDuration(ttl); err != nil || d < 0 {
			return fmt.Errorf(`ttl: want a duration such as "5m", "0" or "inf", got %q`, ttl)
		} else {
			o.TTL = d
		}
	case float64:
		o.TTL = time.Duration(ttl * float64(time.Millisecond))
	default:
		return fmt.Errorf(`ttl: want a duration such as "5m", "0" or "inf", got %v`, ttl)
	}
	if f.Select != "" {
		if err := oneOf("select", f.Select, selectFirst, selectRandom, selectRoundRobin); err != nil {
			return err
		}
		o.Select = f.Select
	}
	if f.Policy != "" {
		if err := oneOf("policy", f.Policy, policyPreferIPv4, policyPreferIPv6, policyOnlyIPv4, policyOnlyIPv6, policyAny); err != nil {
			return err
		}
		o.Policy = f.Policy
	}
	return nil
}

// choose keeps the addresses that the policy wants, those it prefers only if
// there are any.
func choose(policy string, all []netip.Addr) []netip.Addr {
	var four, six []netip.Addr
	for _, a := range all {
		if a = a.Unmap(); a.Is4() {
			four = append(four, a)
		} else {
			six = append(six, a)
		}
	}
	switch policy {
	case policyOnlyIPv4:
		return four
	case policyOnlyIPv6:
		return six
	case policyPreferIPv6:
		if len(six) > 0 {
			return six
		}
		return four
	case policyAny:
		return append(four, six...)
	}
	if len(four) > 0 {
		return four
	}
	return six
}

// resolver turns names into addresses and remembers them for the whole run.
// It is safe for concurrent use.
type resolver struct {
	options dnsOptions
	lookup  func(ctx context.Context, host string) ([]netip.Addr, error)

	mu    sync.Mutex
	known map[string]*answer
}

type answer struct {
	addresses []netip.Addr
	expires   time.Time // zero is never
	next      int       // of roundRobin
}

func newResolver(o dnsOptions) *resolver {
	return &resolver{options: o, known: map[string]*answer{},
		lookup: func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}}
}

// resolve returns the address to call for a name. Two that ask for a new name
// at once both look it up.
func (r *resolver) resolve(ctx context.Context, host string, now time.Time) (netip.Addr, error) {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	r.mu.Lock()
	a := r.known[host]
	if a != nil && (a.expires.IsZero() || now.Before(a.expires)) {
		defer r.mu.Unlock()
		return r.pick(a), nil
	}
	r.mu.Unlock()
	all, err := r.lookup(ctx, host)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("look up %s: %w", host, err)
	}
	all = choose(r.options.Policy, all)
	if len(all) == 0 {
		return netip.Addr{}, fmt.Errorf("look up %s: %w", host,
			&net.DNSError{Err: "no address that options.dns.policy " + r.options.Policy + " allows", Name: host, IsNotFound: true})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	next := &answer{addresses: all}
	if a != nil {
		next.next = a.next
	}
	if r.options.TTL >= 0 {
		next.expires = now.Add(r.options.TTL)
	}
	r.known[host] = next
	return r.pick(next), nil
}

// pick selects one of several addresses. It is called with mu held.
func (r *resolver) pick(a *answer) netip.Addr {
	switch r.options.Select {
	case selectRandom:
		return a.addresses[rand.IntN(len(a.addresses))]
	case selectRoundRobin:
		a.next++
		return a.addresses[(a.next-1)%len(a.addresses)]
	}
	return a.addresses[0]
}

// addressRange is the addresses from first to last, both included.
type addressRange struct{ first, last netip.Addr }

// parseRanges reads addresses, ranges "A-B" and CIDRs, separated by commas.
func parseRanges(text string) ([]addressRange, error) {
	var all []addressRange
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		r, err := parseRange(part)
		if err != nil {
			return nil, fmt.Errorf("options.localIPs: %q: want an address, a range such as 10.0.0.1-10.0.0.9, or a CIDR", part)
		}
		all = append(all, r)
	}
	return all, nil
}

func parseRange(text string) (addressRange, error) {
	if from, to, ok := strings.Cut(text, "-"); ok {
		first, err := netip.ParseAddr(strings.TrimSpace(from))
		if err != nil {
			return addressRange{}, err
		}
		last, err := netip.ParseAddr(strings.TrimSpace(to))
		if err == nil && (first.BitLen() != last.BitLen() || last.Less(first)) {
			err = fmt.Errorf("the range is empty")
		}
		return addressRange{first, last}, err
	}
	p, err := parsePrefix(text)
	if err != nil {
		return addressRange{}, err
	}
	p = p.Masked()
	last := slices.Clone(p.Addr().AsSlice())
	for bit := p.Bits(); bit < p.Addr().BitLen(); bit++ {
		last[bit/8] |= 0x80 >> (bit % 8)
	}
	end, _ := netip.AddrFromSlice(last) // has the length of an address
	first := p.Addr()
	if p.Addr().Is4() && p.Bits() < 31 { // neither the network nor its broadcast address
		first, end = first.Next(), end.Prev()
	}
	return addressRange{first, end}, nil
}

// maxLocalIPs bounds how many addresses are told apart; VUs take them in turn.
const maxLocalIPs = 1 << 16

// localIP returns the address that the n-th VU, from 1, calls from; the zero
// address leaves that to the system.
func localIP(ranges []addressRange, n int) netip.Addr {
	var all []netip.Addr
	for _, r := range ranges {
		for a := r.first; a.IsValid() && !r.last.Less(a) && len(all) < maxLocalIPs; a = a.Next() {
			all = append(all, a)
		}
	}
	if len(all) == 0 {
		return netip.Addr{}
	}
	return all[max(0, n-1)%len(all)]
}
