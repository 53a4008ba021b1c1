package k6http

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// answering returns a server that answers each request of a connection by the
// next of the texts, and closes the connection after the last.
func answering(t *testing.T, connections *atomic.Int64, texts ...string) string {
	return rawServer(t, func(c net.Conn) {
		connections.Add(1)
		r := bufio.NewReader(c)
		for _, text := range texts {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			io.Copy(io.Discard, req.Body)
			io.WriteString(c, text)
		}
	})
}

const okText = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

func TestConnectionsThatCannotServeAgainAreLeft(t *testing.T) {
	for _, c := range []struct {
		name        string
		texts       []string
		code        string
		connections int64
	}{
		{"kept", []string{okText, okText}, `same('x', [http.get(B).body, http.get(B).body], ['ok', 'ok'])`, 1},
		{"closed by the server's word", []string{"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", okText},
			`same('x', [http.get(B).body, http.get(B).body], ['ok', 'ok'])`, 2},
		{"HTTP/1.0", []string{"HTTP/1.0 200 OK\r\n\r\nuntil the end"}, `same('x', [http.get(B).body, http.get(B).proto], ['until the end', 'HTTP/1.0'])`, 2},
		{"more than was promised", []string{okText + "extra", okText}, `same('x', [http.get(B).body, http.get(B).body], ['ok', 'ok'])`, 2},
		{"chunked with trailer", []string{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-T: 1\r\n\r\n", okText},
			`same('x', [http.get(B).body, http.get(B).body], ['ok', 'ok'])`, 1},
		{"informational", []string{"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + okText, okText},
			`same('x', [http.get(B).status, http.get(B).body], [200, 'ok'])`, 1},
		{"informational without end", []string{strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 9)}, `same('x', http.get(B).error_code, 1000)`, 1},
		{"switching protocols", []string{"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", okText}, `same('x', [http.get(B).status, http.get(B).status], [101, 101])`, 2},
		{"a huge header", []string{"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", maxHeaderBytes) + "\r\n\r\n"}, `same('x', http.get(B).error.includes('larger'), true)`, 1},
		{"a redirect with a large body", []string{"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("x", 100000), okText},
			`same('x', http.get(B, { redirects: 1 }).status, 302)`, 2},
		{"bad length", []string{"HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\nok"}, `same('x', [http.get(B).status, http.get(B).error_code], [0, 1000])`, 2},
		{"204 and 304", []string{"HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", okText},
			`same('x', [http.get(B).body, http.get(B).status, http.get(B).body], ['', 304, 'ok'])`, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var n atomic.Int64
			passes(t, 1, answering(t, &n, c.texts...), c.code)
			if n.Load() != c.connections {
				t.Errorf("%d connections, want %d", n.Load(), c.connections)
			}
		})
	}
}

func TestAStaleConnectionIsReplaced(t *testing.T) {
	// The server closes after each answer without having said so.
	var opened, closed atomic.Int64
	base := rawServer(t, func(c net.Conn) {
		opened.Add(1)
		if req, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			io.Copy(io.Discard, req.Body)
			io.WriteString(c, okText)
		}
		c.Close()
		closed.Add(1)
	})
	// This one answers once all of its connections are closed.
	witness := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		for deadline := time.Now().Add(10 * time.Second); closed.Load() < opened.Load() && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
	}))
	defer witness.Close()
	passes(t, 2, base, `
		const results = [], posts = [];
		for (let i = 0; i < 20; i++) results.push(http.get(B).body);
		same('idempotent requests', results.every((b) => b === 'ok'), true);
		for (let i = 0; i < 5; i++) { http.get('`+witness.URL+`'); posts.push(http.post(B, 'x').status); }
		same('a closed connection is seen before it is used', posts, [200, 200, 200, 200, 200]);`)
	if opened.Load() != 25 {
		t.Errorf("%d connections, want 25", opened.Load())
	}
}

// TestAPostIsNotSentTwice has a server that takes the second request of a
// connection and drops it unanswered: it may have been done.
func TestAPostIsNotSentTwice(t *testing.T) {
	var requests atomic.Int64
	base := rawServer(t, func(c net.Conn) {
		r := bufio.NewReader(c)
		for i := range 2 {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			io.Copy(io.Discard, req.Body)
			requests.Add(1)
			if i == 0 {
				io.WriteString(c, okText)
			}
		}
	})
	passes(t, 2, base, `
		same('post', [http.post(B, 'x').status, http.post(B, 'x').status], [200, 0]);
		same('get', [http.get(B).status, http.get(B).status], [200, 200]);`)
	if requests.Load() != 5 {
		t.Errorf("%d requests arrived, want 5: two posts, and three gets of which one is sent again", requests.Load())
	}
}

func TestARequestEndsWithItsIteration(t *testing.T) {
	silent := rawServer(t, func(c net.Conn) { io.Copy(io.Discard, c) })
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for _, scheme := range []string{"http", "https"} { // the latter hangs in its handshake
		began := time.Now()
		o := play(t, strings.Replace(silent, "http", scheme, 1), `export const options = { scenarios: { s: { executor: 'constant-vus', vus: 2, duration: '1s', gracefulStop: '0s' } } };
			---
			http.asyncRequest('GET', B);
			http.get(B);
			console.log('went on');`)
		if took := time.Since(began); o.Err != nil || took > 10*time.Second {
			t.Errorf("%s: %v after %v", scheme, o.Err, took)
		}
		if o.Count("http_reqs", nil) != 0 || strings.Contains(o.Log, "Request Failed") || strings.Contains(o.Log, "went on") {
			t.Errorf("%s: %d samples of requests that were cut; log: %s", scheme, o.Count("http_reqs", nil), o.Log)
		}
	}
}

func TestConnectionsAreClosedAfterTheRun(t *testing.T) {
	var open atomic.Int64
	s := httptest.NewUnstartedServer(pages())
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed:
			open.Add(-1)
		}
	}
	s.Start()
	defer s.Close()
	passes(t, 0, s.URL, `export const options = { vus: 3, iterations: 9 };
		export function setup() { http.get(B + '/echo'); }
		---
		http.batch([B + '/echo', B + '/echo']); http.post(B + '/echo', 'x'.repeat(100000));`)
	for deadline := time.Now().Add(5 * time.Second); open.Load() > 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if open.Load() != 0 {
		t.Errorf("%d connections are still open", open.Load())
	}
}

func TestTakesLeavesTheRestToTheTransport(t *testing.T) {
	d := newDirect(nil, 1)
	for _, c := range []struct {
		method, url, header, value string
		size                       int
		want                       bool
	}{
		{"GET", "http://a/", "X", "y", 0, true},
		{"odd", "http://a:1/", "X", "y", maxDirectBody, true},
		{"GET", "http://a/", "X", "y", maxDirectBody + 1, false},
		{"GET", "https://a/", "X", "y", 0, false},
		{"GET", "/", "X", "y", 0, false},
		{"GET", "http://ä/", "X", "y", 0, false},
		{"bad method", "http://a/", "X", "y", 0, false},
		{"CONNECT", "http://a/", "X", "y", 0, false},
		{"GET", "http://a/", "bad name", "y", 0, false},
		{"GET", "http://a/", "X", "bad\nvalue", 0, false},
		{"GET", "http://a/", "Upgrade", "x", 0, false},
		{"POST", "http://a/", "Expect", "100-continue", 0, false},
	} {
		at, err := parseAddress(c.url)
		if err != nil {
			t.Fatal(err)
		}
		req := &http.Request{Method: c.method, URL: at.url, Host: at.url.Host, Header: http.Header{c.header: {c.value}}}
		if got := d.takes(req, c.size); got != c.want {
			t.Errorf("takes(%+v) = %v", c, got)
		}
	}
	if (*direct)(nil).takes(&http.Request{}, 0) {
		t.Error("a line without direct connections takes a request")
	}
}

func TestTheLimiterEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	l := newLimiter(0.001)
	if err := l.wait(ctx); err != nil {
		t.Fatal(err)
	}
	cause := errors.New("stop")
	cancel(cause)
	if err := l.wait(ctx); !errors.Is(err, cause) {
		t.Errorf("wait = %v, want %v", err, cause)
	}
	if newLimiter(0) != nil || (*limiter)(nil).wait(ctx) != nil {
		t.Error("without a rate there is nothing to wait for")
	}
}

func TestExpectAndUpgradeGoThroughTheTransport(t *testing.T) {
	base := serve(t)
	passes(t, 2, base, `
		same('expect', http.post(B + '/echo', 'x', { headers: { Expect: '100-continue' } }).json('body'), 'x');
		same('connection', http.get(B + '/echo', { headers: { Connection: 'close' } }).status, 200);`)
}
