package script

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// webURL is a URL as browsers take it apart: the parts are percent-encoded,
// and empty when they are missing.
type webURL struct {
	Scheme             string // without the colon
	Username, Password string
	Host               string // without the port
	Port               string // empty for the scheme's own
	Path               string
	Query, Fragment    string // with their ? and #
	Opaque             bool   // a mailto: or data: URL, whose path is not divided
}

// specialPorts are the schemes whose URLs have a host and a divided path, with
// their ports.
var specialPorts = map[string]string{"http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21", "file": ""}

// parseWebURL reads an address, relative to base unless that is nil.
func parseWebURL(text string, base *webURL) (*webURL, error) {
	text = strings.Map(func(r rune) rune {
		if r == '\t' || r == '\n' || r == '\r' {
			return -1
		}
		return r
	}, strings.TrimFunc(text, func(r rune) bool { return r <= ' ' }))
	invalid := fmt.Errorf("invalid URL: %q", text)
	rest, fragment := cutKeeping(text, '#')
	scheme, after, ok := strings.Cut(rest, ":")
	if !ok || !isScheme(scheme) {
		if base == nil {
			return nil, invalid
		}
		return base.resolve(rest, escape(fragment, fragmentEscapes))
	}
	u := &webURL{Scheme: strings.ToLower(scheme), Fragment: escape(fragment, fragmentEscapes)}
	rest, query := cutKeeping(after, '?')
	u.Query = u.escapeQuery(query)
	_, special := specialPorts[u.Scheme]
	if special {
		rest = "//" + strings.TrimLeft(strings.ReplaceAll(rest, `\`, "/"), "/")
		if u.Scheme == "file" {
			rest = "///" + strings.TrimLeft(rest, "/")
		}
	}
	switch authority, isHierarchical := strings.CutPrefix(rest, "//"); {
	case isHierarchical:
		authority, p := cutKeeping(authority, '/')
		if err := u.parseAuthority(authority, special); err != nil {
			return nil, invalid
		}
		u.Path = cleanPath(p, special)
	case strings.HasPrefix(rest, "/"):
		u.Path = cleanPath(rest, true)
	default:
		u.Opaque, u.Path = true, escape(rest, controlEscapes)
	}
	return u, nil
}

// cutKeeping cuts at the first sep and leaves it with the rest.
func cutKeeping(text string, sep byte) (before, rest string) {
	if i := strings.IndexByte(text, sep); i >= 0 {
		return text[:i], text[i:]
	}
	return text, ""
}

func isScheme(s string) bool {
	for i, c := range strings.ToLower(s) {
		if !(c >= 'a' && c <= 'z' || i > 0 && strings.ContainsRune("0123456789+-.", c)) {
			return false
		}
	}
	return s != ""
}

// resolve resolves a relative address without its fragment.
func (u *webURL) resolve(ref, fragment string) (*webURL, error) {
	out := *u
	out.Fragment = fragment
	if u.Opaque {
		if ref != "" {
			return nil, fmt.Errorf("invalid URL: %q is relative to a %s: URL, which has no path", ref, u.Scheme)
		}
		return &out, nil
	}
	_, special := specialPorts[u.Scheme]
	if special {
		ref = strings.ReplaceAll(ref, `\`, "/")
	}
	p, query := cutKeeping(ref, '?')
	switch {
	case strings.HasPrefix(p, "//"):
		return parseWebURL(u.Scheme+":"+ref+fragment, nil)
	case ref == "":
		return &out, nil
	case p == "":
	case strings.HasPrefix(p, "/"):
		out.Path = cleanPath(p, special)
	default:
		out.Path = cleanPath(u.Path[:strings.LastIndexByte(u.Path, '/')+1]+p, special)
	}
	out.Query = out.escapeQuery(query)
	return &out, nil
}

func (u *webURL) parseAuthority(text string, special bool) error {
	host := text
	if i := strings.LastIndexByte(text, '@'); i >= 0 {
		name, password, _ := strings.Cut(text[:i], ":")
		u.Username, u.Password = escape(name, userEscapes), escape(password, userEscapes)
		host = text[i+1:]
	}
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		port := host[i+1:]
		host = host[:i]
		if port != "" {
			n, err := strconv.ParseUint(port, 10, 16)
			if err != nil {
				return fmt.Errorf("port %q: want a number up to 65535", port)
			}
			if port = strconv.FormatUint(n, 10); port != specialPorts[u.Scheme] {
				u.Port = port
			}
		}
	}
	if host == "" {
		if special && u.Scheme != "file" {
			return fmt.Errorf("want a host")
		}
		return nil
	}
	var err error
	u.Host, err = cleanHost(host, special)
	return err
}

// cleanHost returns the canonical form of a name or address.
func cleanHost(host string, special bool) (string, error) {
	if literal, ok := strings.CutPrefix(host, "["); ok {
		addr, err := netip.ParseAddr(strings.TrimSuffix(literal, "]"))
		if err != nil || !addr.Is6() || addr.Zone() != "" || !strings.HasSuffix(literal, "]") {
			return "", fmt.Errorf("host %q: want an IPv6 address in brackets", host)
		}
		return "[" + addr.String() + "]", nil
	}
	if !special {
		return escape(host, controlEscapes), nil
	}
	name, err := idna.Lookup.ToASCII(unescape(host))
	if err != nil || strings.ContainsAny(name, " #%/:<>?@[\\]^|") {
		return "", fmt.Errorf("host %q: want a name or an address", host)
	}
	return name, nil
}

// cleanPath takes . and .. out of a path and percent-encodes it.
func cleanPath(p string, special bool) string {
	if p == "" && !special {
		return ""
	}
	p = strings.NewReplacer("%2e", ".", "%2E", ".").Replace(p)
	var kept []string
	segments := strings.Split(strings.TrimPrefix(p, "/"), "/")
	for i, s := range segments {
		last := i == len(segments)-1
		switch s {
		case "..":
			kept = kept[:max(0, len(kept)-1)]
		case ".":
		default:
			kept = append(kept, escape(s, pathEscapes))
			continue
		}
		if last {
			kept = append(kept, "")
		}
	}
	return "/" + strings.Join(kept, "/")
}

func (u *webURL) escapeQuery(query string) string {
	set := queryEscapes
	if _, special := specialPorts[u.Scheme]; special {
		set += "'"
	}
	if query == "?" {
		return "" // scripts see an empty search, and the mark means nothing to a server
	}
	return escape(query, set)
}

// What is percent-encoded in the parts of a URL, beside controls and what is
// no ASCII.
const (
	controlEscapes  = ""
	fragmentEscapes = " \"<>`"
	queryEscapes    = " \"<>"
	pathEscapes     = " \"<>`?#{}^"
	userEscapes     = pathEscapes + "/:;=@[\\]|"
)

func escape(text, set string) string {
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		if c < ' ' || c > '~' || strings.IndexByte(set, c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// unescape undoes percent-encoding, and leaves what is none.
func unescape(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+2 < len(text) {
			if n, err := strconv.ParseUint(text[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(n))
				i += 2
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}
