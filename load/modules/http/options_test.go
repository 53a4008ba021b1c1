package k6http

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metachaos/metachaos/load/script"
)

func TestOptions(t *testing.T) {
	base := serve(t)
	port := portOf(t, base)
	for _, c := range []struct {
		name, options, code string
		checks              int
	}{
		{"user agent", `userAgent: 'mine/2', maxRedirects: 1`, `same('agent', http.get(B + '/echo').json('header.User-Agent'), ['mine/2']);
			same('own', http.get(B + '/echo', { headers: { 'user-agent': 'x' } }).json('header.User-Agent'), ['x']);
			same('redirects', http.get(B + '/hops/3').status, 302);`, 3},
		{"no user agent", `userAgent: ''`, `same('agent', http.get(B + '/echo').json('header.User-Agent'), undefined);`, 1},
		{"discard", `discardResponseBodies: true`, `same('bodies', [http.get(B + '/json').body, http.get(B + '/bytes/2', { responseType: 'text' }).body], [null, 'xx']);`, 1},
		{"hosts", `hosts: { 'a.test': '127.0.0.1', 'b.test:80': '127.0.0.1:` + port + `', '*.c.test': '127.0.0.1:` + port + `', 'd.c.test': '127.0.0.1:1' }`,
			`same('name', http.get('http://a.test:` + port + `/echo').json('host'), 'a.test:` + port + `');
			same('port', http.get('http://b.test/echo').status, 200);
			same('wildcard', [http.get('http://x.y.c.test/echo').status, http.get('http://d.c.test/echo').error_code], [200, 1212]);`, 3},
		{"local addresses", `localIPs: '127.0.0.7-127.0.0.8,127.1.0.0/30'`, `same('from', http.get(B + '/echo').json('from').split(':')[0], '127.0.0.7');`, 1},
		{"dns", `dns: { ttl: '0', select: 'first', policy: 'onlyIPv4' }`, `same('name', http.get('http://localhost:` + port + `/echo').remote_ip, '127.0.0.1');`, 1},
		{"connections", `iterations: 2`, `const from = () => http.get(B + '/echo').json('from'), a = from();
			same('kept', [from() === a, http.get(B).timings.connecting], [true, 0]);
			globalThis.before = globalThis.before || a;
			same('over iterations', globalThis.before === a, true);`, 4},
		{"a connection for each request", `noConnectionReuse: true`, `const from = () => http.get(B + '/echo').json('from');
			same('fresh', new Set([from(), from(), from()]).size, 3);`, 1},
		{"connections for each iteration", `iterations: 2, noVUConnectionReuse: true`, `const from = () => http.get(B + '/echo').json('from'), a = from();
			same('kept', from() === a, true);
			same('fresh', globalThis.before === a, false);
			globalThis.before = a;`, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			passes(t, c.checks, base, "export const options = { "+c.options+" };\n---\n"+c.code)
		})
	}
}

func TestBadOptions(t *testing.T) {
	for _, c := range []struct{ options, want string }{
		{`dns: { policy: 'preferIpv4' }`, "did you mean"},
		{`dns: { ttl: 'soon' }`, "ttl"},
		{`blacklistIPs: ['x']`, "blacklistIPs"},
		{`hosts: { 'a*b': '1.2.3.4' }`, "hosts"},
		{`hosts: { a: 'name' }`, "hosts"},
		{`blockHostnames: ['a*']`, "blockHostnames"},
		{`localIPs: '9-1'`, "localIPs"},
		{`httpDebug: 'all'`, "httpDebug"},
		{`tlsVersion: 'tls9'`, "tlsVersion"},
		{`tlsCipherSuites: ['TLS_X']`, "tlsCipherSuites"},
		{`tlsAuth: [{ cert: 'x', key: 'y' }]`, "tlsAuth[0]"},
		{`batch: 'many'`, "options.batch"},
	} {
		o := play(t, "http://127.0.0.1:1", "export const options = { "+c.options+" };\n---\nhttp.get(B);")
		if !strings.Contains(o.Log, c.want) || o.Sum("http_reqs", nil) != 0 {
			t.Errorf("%s: want %q in the log: %s", c.options, c.want, o.Log)
		}
	}
}

func TestInitCodeMakesNoRequests(t *testing.T) {
	for _, code := range []string{`http.get(B)`, `http.asyncRequest('GET', B)`, `http.batch([B])`, `http.cookieJar()`} {
		o := play(t, "http://127.0.0.1:1", code+";\n---\n")
		var coded *script.Error
		if !errors.As(o.Err, &coded) || !strings.Contains(o.Err.Error(), "init code") {
			t.Errorf("%s in init code: %v", code, o.Err)
		}
	}
}

func TestDebugging(t *testing.T) {
	base := serve(t)
	for _, c := range []struct {
		level      string
		want, hide string
	}{{"'full'", "the-body", "nothing"}, {"true", "X-Secret", "the-body"}, {"'headers'", "200 OK", "the-body"}} {
		o := passes(t, 1, base, "export const options = { httpDebug: "+c.level+" };\n---\n"+
			`same('body', http.post(B + '/status/200', 'the-body', { headers: { 'X-Secret': 'x' } }).status, 200);`)
		if !strings.Contains(o.Log, c.want) || strings.Contains(o.Log, c.hide) {
			t.Errorf("httpDebug %s: want %q and not %q: %s", c.level, c.want, c.hide, o.Log)
		}
	}
}

func TestTheRateIsLimitedForAllVUs(t *testing.T) {
	var mu sync.Mutex
	var times []time.Time
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		times = append(times, time.Now())
	}))
	defer s.Close()
	start := time.Now() // the first request may be late, and none may be early
	passes(t, 0, s.URL, "export const options = { vus: 4, iterations: 11, rps: 50 };\n---\nhttp.get(B);")
	if took := times[len(times)-1].Sub(start); len(times) != 11 || took < 190*time.Millisecond {
		t.Errorf("%d requests within %v, want 11 in 200 ms", len(times), took)
	}
}

func TestBytesOnTheWireAreCounted(t *testing.T) {
	var read, written atomic.Int64
	s := httptest.NewUnstartedServer(pages())
	s.Listener = countingListener{s.Listener, &read, &written}
	s.Start()
	defer s.Close()
	o := passes(t, 0, s.URL, `export const options = { iterations: 2 };
		---
		http.post(B + '/echo', 'x'.repeat(5000), { tags: { own: 'x' } });
		http.get(B + '/bytes/70000', { responseType: 'none' });
		http.post(B + '/echo', 'x'.repeat(200000));`)
	if sent, received := o.Sum("data_sent", nil), o.Sum("data_received", nil); sent != float64(read.Load()) || received != float64(written.Load()) {
		t.Errorf("%v sent, %v received; the server read %d and wrote %d", sent, received, read.Load(), written.Load())
	}
	if o.Count("data_sent", map[string]string{"own": "x"}) != 0 || o.Count("data_sent", map[string]string{"scenario": "default"}) == 0 {
		t.Error("bytes have the tags of a request, or not those of the VU")
	}
}

type countingListener struct {
	net.Listener
	read, written *atomic.Int64
}

func (l countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return countingConn{c, l.read, l.written}, err
}

type countingConn struct {
	net.Conn
	read, written *atomic.Int64
}

func (c countingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.read.Add(int64(n))
	return n, err
}

func (c countingConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.written.Add(int64(n))
	return n, err
}
