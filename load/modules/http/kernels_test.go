package k6http

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

func TestRedirectHost(t *testing.T) {
	hosts := map[string]string{"a.test": "name", "a.test:81": "name and port", "*.b.test": "short", "*.x.b.test": "long", "*:99": "any on a port", "*": "any"}
	for address, want := range map[string]string{"a.test:80": "name", "A.test:81": "name and port", "y.b.test:80": "short", "y.x.b.test:80": "long",
		"c.test:99": "any on a port", "a.test:99": "name", "c.test:80": "any"} {
		host, port, _ := net.SplitHostPort(address)
		if got, _ := redirectHost(hosts, host, port); got != want {
			t.Errorf("%s goes to %q, want %q", address, got, want)
		}
	}
	if _, ok := redirectHost(map[string]string{"*.b.test": "x"}, "b.test", "80"); ok {
		t.Error("*.b.test matches b.test")
	}
}

func TestClassify(t *testing.T) {
	op := func(kind string, err error) error {
		return fmt.Errorf("wrapped: %w", &net.OpError{Op: kind, Net: "tcp", Err: err})
	}
	for _, c := range []struct {
		err  error
		want int
	}{
		{errors.New("whatever"), codeGeneric},
		{op("dial", os.ErrDeadlineExceeded), codeDialTimeout},
		{op("dial", os.NewSyscallError("connect", syscall.ECONNREFUSED)), codeDialRefused},
		{op("dial", os.NewSyscallError("connect", syscall.ENETUNREACH)), codeDialErrno},
		{op("dial", errors.New("x")), codeDial},
		{op("read", os.NewSyscallError("read", syscall.ECONNRESET)), codeConnectionReset},
		{op("write", os.NewSyscallError("write", syscall.EPIPE)), codeBrokenPipe},
		{op("write", os.NewSyscallError("write", syscall.ENOBUFS)), codeTCPErrno},
		{op("read", errors.New("x")), codeTCP},
		{&net.OpError{Op: "dial", Net: "udp", Err: errors.New("x")}, codeNonTCP},
		{&net.DNSError{Err: "x", IsNotFound: true}, codeNoSuchHost},
		{&net.DNSError{Err: "x"}, codeDNS},
		{http2.GoAwayError{ErrCode: http2.ErrCodeNo}, codeGoAway + 1},
		{http2.GoAwayError{ErrCode: 99}, codeGoAway},
		{http2.StreamError{Code: http2.ErrCodeCancel}, codeStream + 1 + 8},
		{http2.ConnectionError(http2.ErrCodeProtocol), codeHTTP2Connection + 1 + 1},
		{errors.New("http2: something"), codeHTTP2},
		{fmt.Errorf("x: %w", errTimeout), codeTimeout},
		{context.DeadlineExceeded, codeTimeout},
	} {
		if code, text := classify(c.err); code != c.want || text == "" {
			t.Errorf("classify(%v) = %d, %q; want %d", c.err, code, text, c.want)
		}
	}
}

// TestDigest holds the examples of RFC 7616, section 3.9.1, and one without
// qop, which RFC 2069 defines.
func TestDigest(t *testing.T) {
	to, err := parseAddress("http://www.example.org/dir/index.html")
	if err != nil {
		t.Fatal(err)
	}
	const rest = `realm="http-auth@example.org", qop="auth, auth-int", nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"`
	for _, c := range []struct{ header, want string }{
		{"Digest algorithm=MD5, " + rest, `response="8ca523f5e9506fed4657c9700eebdbec"`},
		{"digest " + rest + ", algorithm=SHA-256", `response="753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"`},
		{`Digest realm="r", nonce="n"`, `response="0bab5c24c08a1ef94a6cc3d446ce558a"`},
	} {
		asked, ok := parseChallenge(c.header)
		if !ok {
			t.Fatalf("%s is no challenge", c.header)
		}
		got, err := asked.authorization(leg{method: "GET", to: to}, "Mufasa", "Circle of Life", "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ")
		if err != nil || !strings.Contains(got, c.want) {
			t.Errorf("answer to %s: %s, %v; want %s", c.header, got, err, c.want)
		}
	}
	for _, header := range []string{"Basic realm=x", "Digest", `Digest realm="r"`, ""} {
		if _, ok := parseChallenge(header); ok {
			t.Errorf("%q is a challenge that can be met", header)
		}
	}
	if _, err := (challenge{algorithm: "SHA-512"}).authorization(leg{method: "GET", to: to}, "u", "p", "c"); err == nil {
		t.Error("an unknown algorithm is answered")
	}
	int1, _ := challenge{nonce: "n", qop: []string{"auth-int"}, algorithm: "MD5-sess"}.authorization(leg{method: "GET", to: to, body: &body{wire: []byte("a")}}, "u", "p", "c")
	int2, _ := challenge{nonce: "n", qop: []string{"auth-int"}, algorithm: "MD5-sess"}.authorization(leg{method: "GET", to: to}, "u", "p", "c")
	if int1 == int2 || !strings.Contains(int1, "qop=auth-int") {
		t.Error("auth-int does not depend on the body")
	}
}

func TestAddressesHideCredentials(t *testing.T) {
	for text, want := range map[string]string{
		"http://a/b?c=u:p@d":        "http://a/b?c=u:p@d",
		"http://u:p@a/b":            "http://****:****@a/b",
		"http://u@a/b":              "http://****@a/b",
		"http://u:@a":               "http://****:****@a",
		"http://u:p%40:x@a/u:p@":    "http://****:****@a/u:p@",
		"http://h/http://u:p@other": "http://h/http://u:p@other",
	} {
		a, err := parseAddress(text)
		if err != nil {
			t.Fatal(err)
		}
		if a.clean != want {
			t.Errorf("%s is shown as %s, want %s", text, a.clean, want)
		}
	}
	if _, err := parseAddress("http://user:secret@["); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("error of a bad address: %v", err)
	}
}

func TestRedirectLegs(t *testing.T) {
	at := func(text string) *address {
		a, err := parseAddress(text)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	from := leg{method: "POST", to: at("https://a.test/x"), header: http.Header{"Authorization": {"s"}, "Cookie": {"c=1"}, "X": {"y"}}, host: "other"}
	for _, c := range []struct {
		location string
		status   int
		want     string
	}{
		{"/y", 302, "GET https://a.test/y host=other auth=s referer=https://a.test/x"},
		{"https://b.a.test/", 307, "POST https://b.a.test/ host= auth=s referer=https://a.test/x"},
		{"https://b.test/", 308, "POST https://b.test/ host= auth= referer=https://a.test/x"},
		{"//b.test/", 303, "GET https://b.test/ host= auth= referer=https://a.test/x"},
		{"http://a.test/", 301, "GET http://a.test/ host= auth=s referer="},
		{"http://u:p@b.test/", 301, "GET http://u:p@b.test/ host= auth=Basic dTpw referer="},
	} {
		u, err := from.to.url.Parse(c.location)
		if err != nil {
			t.Fatal(err)
		}
		l := redirect(from, u, c.location, c.status)
		got := fmt.Sprintf("%s %s host=%s auth=%s referer=%s", l.method, l.to.text, l.host, l.header.Get("Authorization"), l.header.Get("Referer"))
		if got != c.want || l.header.Get("X") != "y" {
			t.Errorf("%d to %s: %s, want %s", c.status, c.location, got, c.want)
		}
	}
	head := redirect(leg{method: "HEAD", to: at("http://a/"), header: http.Header{}}, &url.URL{Scheme: "http", Host: "a"}, "/", 303)
	if head.method != http.MethodHead {
		t.Errorf("HEAD becomes %s", head.method)
	}
}

func TestTimingsAddUp(t *testing.T) {
	start := time.Now()
	fresh := &conn{lookedUp: time.Millisecond, connecting: start.Add(2 * time.Millisecond), connected: start.Add(5 * time.Millisecond),
		tlsHandshaking: start.Add(5 * time.Millisecond), secured: start.Add(9 * time.Millisecond)}
	const ms = time.Millisecond
	for _, c := range []struct {
		name              string
		conn              *conn
		reused            bool
		got, wrote, first time.Duration
		want              timings
	}{
		{"no connection", nil, false, 0, 0, 0, timings{}},
		{"fresh", fresh, false, 10 * ms, 11 * ms, 15 * ms, timings{2 * ms, ms, 3 * ms, 4 * ms, ms, 4 * ms, 5 * ms}},
		{"reused", fresh, true, ms, 2 * ms, 12 * ms, timings{blocked: ms, sending: ms, waiting: 10 * ms, receiving: 8 * ms}},
		{"never written", fresh, true, ms, 0, 0, timings{blocked: ms, sending: 19 * ms}},
		{"never answered", fresh, true, ms, 2 * ms, 0, timings{blocked: ms, sending: ms, waiting: 18 * ms}},
		{"answered early", fresh, true, ms, 9 * ms, 5 * ms, timings{blocked: ms, sending: 4 * ms, receiving: 15 * ms}},
	} {
		tr := &tracer{start: start}
		tr.conn.Store(c.conn)
		tr.reused.Store(c.reused)
		tr.got.Store(int64(c.got))
		tr.wrote.Store(int64(c.wrote))
		tr.first.Store(int64(c.first))
		if got := tr.timings(20 * ms); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestMemoIsBounded(t *testing.T) {
	m := newMemo[int, int](3)
	for i := range 10 {
		m.put(i, i)
		if v, ok := m.get(i); !ok || v != i || len(m.values) > 3 {
			t.Fatalf("after %d: %v of %d", i, m.values, len(m.values))
		}
	}
}
