package k6http

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestFailuresHaveCodes(t *testing.T) {
	drop := rawServer(t, func(c net.Conn) { readRequest(c) })
	cut := rawServer(t, func(c net.Conn) {
		readRequest(c)
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123456789")
	})
	noise := rawServer(t, func(c net.Conn) {
		readRequest(c)
		io.WriteString(c, "\x00\x01 what?\r\n\r\n")
	})
	reset := rawServer(t, func(c net.Conn) {
		readRequest(c)
		_ = c.(*net.TCPConn).SetLinger(0)
	})
	silent := rawServer(t, func(c net.Conn) { io.Copy(io.Discard, c) })
	o := passes(t, 16, serve(t), `export const options = { blacklistIPs: ['127.0.0.9', '10.0.0.0/8'], blockHostnames: ['*.blocked.test'], hosts: { 'x.test': '10.1.2.3' } };
		---
		const code = (name, want, url, params) => { const r = http.get(url, params); same(name, [r.error_code, r.status, r.body, r.error !== ''], [want, 0, null, true]); };
		code('refused', 1212, 'http://`+closedPort(t)+`/');
		code('dropped', 1000, '`+drop+`');
		code('truncated', 1000, '`+cut+`');
		code('noise', 1000, '`+noise+`');
		code('reset', 1220, '`+reset+`');
		code('timeout', 1050, '`+silent+`', { timeout: 100 });
		code('no such host', 1101, 'http://nowhere.invalid/');
		code('blacklisted', 1110, 'http://127.0.0.9/');
		code('blacklisted by hosts', 1110, 'http://x.test/');
		code('blocked', 1111, 'http://a.blocked.test/');
		code('no scheme', 1000, 'not a url');
		code('no host', 1000, 'http:///x');
		code('unknown scheme', 1000, 'ftp://127.0.0.1/');
		code('malformed', 1020, 'http://[::1/');
		code('bad header', 1000, B, { headers: { 'bad name': 'x' } });
		same('statuses', [http.get(B + '/status/404').error_code, http.get(B + '/status/503').error_code, http.get(B + '/status/404').error], [1404, 1503, '']);`)
	if n := o.Sum("http_reqs", map[string]string{"status": "0", "error_code": "1212", "error": "dial: connection refused", "expected_response": "false"}); n != 1 {
		t.Errorf("%v samples of the refused connection, want 1", n)
	}
	if n := o.Sum("http_reqs", map[string]string{"error_code": "1020"}); n != 0 {
		t.Errorf("%v samples of a request that was never made", n)
	}
	if !strings.Contains(o.Log, "Request Failed") {
		t.Errorf("failures are not logged: %s", o.Log)
	}
}

// readRequest reads up to the end of a request's header.
func readRequest(c net.Conn) {
	var b [1]byte
	text := ""
	for !strings.HasSuffix(text, "\r\n\r\n") {
		if _, err := c.Read(b[:]); err != nil {
			return
		}
		text += string(b[:])
	}
}

func TestFailuresThrowIfAskedTo(t *testing.T) {
	passes(t, 6, serve(t), `export const options = { throw: true };
		---
		const throws = async (f) => { try { await f(); return false; } catch (e) { return true; } };
		const bad = 'http://`+closedPort(t)+`/';
		same('get', await throws(() => http.get(bad)), true);
		same('overridden', await throws(() => http.get(bad, { throw: false })), false);
		same('batch', await throws(() => http.batch([B + '/echo', bad])), true);
		same('async', await throws(() => http.asyncRequest('GET', bad)), true);
		same('malformed', await throws(() => http.get('http://[')), true);
		same('a status is no failure', await throws(() => http.get(B + '/status/500')), false);`)
}

func TestEncodingsOfResponses(t *testing.T) {
	passes(t, 11, serve(t), `
		for (const list of ['gzip', 'deflate', 'br', 'zstd', 'gzip,br']) same(list, http.get(B + '/encoded/?' + list).body, 'abc'.repeat(500));
		for (const list of ['gzip', 'br', 'zstd']) { const r = http.get(B + '/garbage/?' + list); same('bad ' + list, [r.error_code, r.status], [1701, 0]); }
		same('unknown', http.get(B + '/garbage/?what').body.includes('no encoding'), true);
		same('discarded', http.get(B + '/garbage/?gzip', { responseType: 'none' }).status, 200);
		same('bad params', [http.get(B, { responseType: 'txt' }).error.includes('did you mean'), http.post(B, 'x', { compression: 'lzma' }).status], [true, 0]);`)
}

func TestBatch(t *testing.T) {
	var now, most, local atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer now.Add(-1)
		n := now.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		if r.URL.Path == "/meet" { // ends once several are here at once
			local.Add(1)
			for deadline := time.Now().Add(5 * time.Second); local.Load() < 3 && time.Now().Before(deadline); {
				time.Sleep(time.Millisecond)
			}
		}
		io.WriteString(w, r.URL.RawQuery)
	}))
	defer s.Close()
	o := passes(t, 7, s.URL, `export const options = { batchPerHost: 3 };
		---
		const meet = http.batch(Array.from({ length: 9 }, (_, i) => B + '/meet?' + i));
		same('in their order', meet.map((r) => r.body), ['0', '1', '2', '3', '4', '5', '6', '7', '8']);
		const named = http.batch({ a: B + '?a', b: ['POST', B + '?b', 'body', { tags: { t: 'b' } }], c: { url: B + '?c' }, d: http.url`+"`${B}?d`"+` });
		same('named', Object.entries(named).map(([k, r]) => k + r.body + r.request.method), ['aaGET', 'bbPOST', 'ccGET', 'ddGET']);
		same('empty', http.batch([]), []);
		const mixed = http.batch(['http://[', B + '?ok', 'http://`+closedPort(t)+`']);
		same('failures', mixed.map((r) => r.error_code), [1020, 0, 1212]);
		same('an entry without address', http.batch([{ method: 'GET' }])[0].status, 0);
		const throws = (f) => { try { f(); return false; } catch (e) { return true; } };
		same('no list', [throws(() => http.batch()), throws(() => http.batch('x'))], [true, true]);
		same('discard', http.batch([['GET', B + '?x', null, { responseType: 'none' }]])[0].body, null);`)
	if most.Load() != 3 {
		t.Errorf("%d requests for one host at once, want 3", most.Load())
	}
	if n := o.Sum("http_reqs", map[string]string{"t": "b"}); n != 1 {
		t.Errorf("%v tagged requests, want 1", n)
	}
}

func TestAsyncRequests(t *testing.T) {
	var here atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		here.Add(1)
		for deadline := time.Now().Add(5 * time.Second); here.Load() < 4 && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		io.WriteString(w, r.Method)
	}))
	defer s.Close()
	o := passes(t, 3, s.URL, `
		const many = await Promise.all([1, 2, 3, 4].map((i) => http.asyncRequest('PUT', B, 'x', { tags: { i } })));
		same('all', many.map((r) => r.body), ['PUT', 'PUT', 'PUT', 'PUT']);
		same('a failure resolves', (await http.asyncRequest('GET', 'http://`+closedPort(t)+`')).error_code, 1212);
		same('so does a bad address', (await http.asyncRequest('GET', 'http://[')).error_code, 1020);
		http.asyncRequest('GET', B, null, { tags: { i: 'unawaited' } });`)
	if here.Load() != 5 || o.Sum("http_reqs", map[string]string{"i": "unawaited"}) != 1 {
		t.Errorf("%d requests arrived, want 5; samples %v", here.Load(), o.Sum("http_reqs", nil))
	}
}
