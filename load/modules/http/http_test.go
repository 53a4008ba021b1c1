package k6http

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestTheShapeOfAResponse(t *testing.T) {
	base := serve(t)
	passes(t, 24, base, `
		const r = http.get(B + '/json');
		same('status', [r.status, r.status_text, r.proto], [200, '200 OK', 'HTTP/1.1']);
		same('error', [r.error, r.error_code], ['', 0]);
		same('remote', [r.remote_ip, String(r.remote_port)], ['127.0.0.1', B.split(':').pop()]);
		same('url', [r.url, r.request.url, r.request.method, r.request.body], [B + '/json', B + '/json', 'GET', '']);
		same('tls', [r.tls_version, r.tls_cipher_suite, r.ocsp.status], ['', '', '']);
		same('keys', Object.keys(r).includes('timings') && !Object.keys(r).includes('json'), true);
		same('stringify', JSON.parse(JSON.stringify(r)).status, 200);
		same('spread', { ...r }.status, 200);
		same('in', ['status' in r, 'json' in r, 'nope' in r], [true, true, false]);
		r.mine = 1; r.status = 7;
		same('set', [r.mine, r.status], [1, 7]);
		delete r.status;
		same('delete', [r.status, Object.keys(r).includes('status')], [undefined, false]);
		same('whole', r.json().a.b[1], 2.5);
		same('the same object', r.json() === r.json(), true);
		same('paths', ['a.b.0', 'a.b.1', 'a.b.2', 'a.b.3', 'a.b.4', 'a.b.5.c', 'a.b.#', 't', 'no.no'].map((p) => r.json(p)),
			[1, 2.5, 'x', null, true, false, 6, 'ü', undefined]);
		same('array', r.json('a.b'), [1, 2.5, 'x', null, true, { c: false }]);
		let message;
		try { http.get(B + '/page').json(); } catch (e) { message = e.message; }
		same('where JSON ends', message.includes('line 1, character 1'), true);
		same('path into what is no JSON', http.get(B + '/page').json('a'), undefined);
		try { http.get(B + '/json', { responseType: 'none' }).json(); } catch (e) { message = e.message; }
		same('discarded', message.includes('responseType'), true);
		const bin = http.get(B + '/bytes/3', { responseType: 'binary' });
		same('binary', [bin.body instanceof ArrayBuffer, bin.body.byteLength], [true, 3]);
		same('head', [http.head(B + '/bytes/3').body, http.head(B + '/bytes/3').status], ['', 200]);
		same('methods', [http.get, http.post, http.put, http.patch, http.del, http.options].map((f) => f(B + '/echo').json('method')),
			['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
		same('any method, as it is', http.request('weird', B + '/echo', 'x').json('method'), 'weird');
		same('html', r.html === undefined || http.get(B + '/page').html('title').text(), 'T');
		same('cookies', r.cookies, {});`)
}

func TestTheDefaultExport(t *testing.T) {
	passes(t, 6, serve(t), `
		same('functions', ['get', 'batch', 'CookieJar'].map((k) => typeof http[k]), ['function', 'function', 'function']);
		same('one function', http.get === http.get, true);
		same('keys', [Object.keys(http).includes('asyncRequest'), Object.keys(http).includes('OCSP_REASON_CA_COMPROMISE'), 'nope' in http], [true, true, false]);
		const get = http.get;
		http.get = (url) => get(url, { tags: { wrapped: 'y' } });
		http.mine = 1;
		same('wrapped', [http.get(B + '/json').status, http.mine, Object.keys(http).includes('mine')], [200, 1, true]);
		same('constants', [http.TLS_1_0, http.TLS_1_3, http.OCSP_STATUS_REVOKED], ['tls1.0', 'tls1.3', 'revoked']);
		delete http.mine;
		same('deleted', http.mine, undefined);`)
}

func TestRequestBodies(t *testing.T) {
	passes(t, 14, serve(t), `
		const post = (body, params) => http.post(B + '/echo', body, params).json();
		const form = post({ a: 'x y', list: [1, 'two'], deep: { k: 1 }, yes: true, none: null });
		same('form', form.body, 'a=x+y&deep=%7B%22k%22%3A1%7D&list=1&list=two&none=null&yes=true');
		same('type of a form', form.header['Content-Type'], ['application/x-www-form-urlencoded']);
		same('own type', post({ a: 1 }, { headers: { 'content-type': 'text/x' } }).header['Content-Type'], ['text/x']);
		same('no body', [post().length, post(null).length, post(undefined).length], [0, 0, 0]);
		same('empty is chunked', [post('').length, post({}).length], [-1, -1]);
		same('bytes', [post(new Uint8Array([1, 2]).buffer).size, post(new Uint8Array([1, 2, 3, 4]).subarray(1, 3)).body], [2, '\u0002\u0003']);
		same('large', post('y'.repeat(100000)).size, 100000);
		same('text of a body', http.post(B + '/echo', { a: 1 }).request.body, 'a=1');
		const parts = post({ text: 'plain', f: http.file('content', 'n"me.txt', 'text/plain'), g: http.file(new Uint8Array([65]).buffer) });
		same('file', parts.files.f, ['n"me.txt', 'text/plain', 'content']);
		same('unnamed file', [parts.files.g[0].length > 5, parts.files.g[1], parts.files.g[2]], [true, 'application/octet-stream', 'A']);
		same('field beside a file', parts.fields.text, ['plain']);
		for (const encoding of ['gzip', 'br, zstd']) {
			const r = post('z'.repeat(999), { compression: encoding });
			same(encoding, [r.size < 100, r.header['Content-Encoding']], [true, [encoding]]);
		}
		same('what is no body', [post === undefined || http.post(B + '/echo', 5).status, http.post(B + '/echo', [1]).status], [0, 0]);`)
}

func TestRedirects(t *testing.T) {
	base := serve(t)
	other := serve(t)
	o := passes(t, 9, base, `
		const land = (code, where, params) => http.request('PUT', B + '/to/' + code + '?' + where, 'body', params);
		same('methods', [301, 302, 303, 307, 308].map((c) => { const j = land(c, '/echo').json(); return j.method + j.body; }),
			['GET', 'GET', 'GET', 'PUTbody', 'PUTbody']);
		const r = land(302, '/echo?x=1', { headers: { 'Content-Type': 'a/b', Host: 'shop.test', Authorization: 'me' } });
		same('what it came to', [r.url, r.request.url, r.request.method], [B + '/echo?x=1', B + '/to/302?/echo?x=1', 'PUT']);
		same('headers', [r.json('header.Content-Type'), r.json('header.Authorization'), r.json('host'), r.json('header.Referer')],
			[undefined, ['me'], 'shop.test', [B + '/to/302?/echo?x=1']]);
		const away = land(302, '`+strings.Replace(other, "127.0.0.1", "localhost", 1)+`/echo', { headers: { Authorization: 'me' } });
		same('credentials stay', [away.status, away.json('header.Authorization')], [200, undefined]);
		same('no location', http.get(B + '/status/302').status, 302);
		same('limit', [http.get(B + '/hops/5', { redirects: 2 }).headers.Location, http.get(B + '/hops/5', { redirects: 0 }).url], ['/hops/2', B + '/hops/5']);
		same('default limit', http.get(B + '/hops/11').status, 302);
		same('ten are fine', http.get(B + '/hops/10').status, 200);
		same('bad location', [http.get(B + '/to/302?http://[', { tags: { bad: 'y' } }).error_code], [1000]);`)
	if got := strings.Count(o.Log, "stopped after 10 redirects"); got != 1 {
		t.Errorf("%d warnings of too many redirects, want 1: %s", got, o.Log)
	}
	if n := o.Sum("http_reqs", map[string]string{"url": base + "/hops/1", "status": "302"}); n != 2 {
		t.Errorf("%v samples of one hop, want 2", n)
	}
}

func TestCookies(t *testing.T) {
	passes(t, 26, serve(t), `export const options = { iterations: 2 };
		---
		const sent = (params) => http.get(B + '/echo', params).json('header.Cookie');
		same('a fresh jar', sent(), undefined);
		http.get(B + '/set?a=1');
		same('kept', sent(), ['a=1']);
		same('added', sent({ cookies: { a: '2', b: { value: '3' } } }), ['a=2; b=3; a=1']);
		same('replaced', sent({ cookies: { a: { value: '2', replace: true } } }), ['a=2']);
		same('not kept', sent(), ['a=1']);
		same('set on the way', http.get(B + '/set-and-go').json('header.Cookie'), ['a=1; hop=1']);
		const seen = http.get(B + '/set?c=4').cookies.c[0];
		same('response', [seen.name, seen.value, seen.path, seen.max_age, seen.expires], ['c', '4', '/', 0, 0]);
		const jar = http.cookieJar();
		same('of the VU', jar.cookiesForURL(B), { a: ['1'], hop: ['1'], c: ['4'] });
		jar.set(B, 'own', 'o', { path: '/echo', max_age: 60, expires: 'Wed, 01 Jan 2200 00:00:00 GMT', http_only: true });
		same('path', [jar.cookiesForURL(B + '/echo').own, jar.cookiesForURL(B).own], [['o'], undefined]);
		jar.delete(B, 'a'); jar.clear(B);
		same('deleted', jar.cookiesForURL(B), {});
		const own = new http.CookieJar();
		own.set(B, 'k', 'v');
		same('own jar', [own instanceof http.CookieJar, sent({ jar: own }), sent()[0].includes('k=')], [true, ['k=v'], false]);
		same('request', http.get(B + '/echo', { jar: own, cookies: { p: 'q' } }).request.cookies,
			{ k: [{ name: 'k', value: 'v', replace: false }], p: [{ name: 'p', value: 'q', replace: false }] });
		own.set(B, 'expired', 'x', { expires: 'Thu, 01 Jan 1970 00:00:01 GMT' });
		same('expired', own.cookiesForURL(B).expired, undefined);`)
}

func TestCookiesOutliveIterationsIfAskedTo(t *testing.T) {
	passes(t, 2, serve(t), `export const options = { iterations: 2, noCookiesReset: true };
		---
		same('cookie', http.get(B + '/echo').json('header.Cookie'), __ITER === 0 ? undefined : ['a=1']);
		http.get(B + '/set?a=1');`)
}

func TestTagsOfSamples(t *testing.T) {
	base := serve(t)
	o := passes(t, 0, base, `export const options = { tags: { run: 'r' }, systemTags: ['proto', 'status', 'method', 'url', 'name', 'group', 'error', 'error_code', 'expected_response', 'scenario', 'ip'] };
		---
		group('g', () => http.get(B + '/echo?i=1', { tags: { own: 'x', n: 5 } }));
		http.get(B + '/status/404');
		http.get(B + '/status/500', { responseCallback: null });
		http.get(http.url`+"`${B}/echo/${17}`"+`);
		http.get(B + '/named', { tags: { name: 'n' } });
		http.get(B.replace('//', '//user:secret@') + '/masked');
		exec.vu.metrics.tags.name = 'all';
		http.get(B + '/last');`)
	for _, c := range []struct {
		tags map[string]string
		want float64
	}{
		{map[string]string{"url": base + "/echo?i=1", "name": base + "/echo?i=1", "own": "x", "n": "5", "group": "::g", "run": "r", "method": "GET",
			"status": "200", "proto": "HTTP/1.1", "scenario": "default", "expected_response": "true", "ip": "127.0.0.1"}, 1},
		{map[string]string{"status": "404", "error_code": "1404", "expected_response": "false"}, 1},
		{map[string]string{"status": "500", "error_code": "1500"}, 1},
		{map[string]string{"name": "${}/echo/${}", "url": "${}/echo/${}"}, 1},
		{map[string]string{"name": "n", "url": "n"}, 1},
		{map[string]string{"name": strings.Replace(base, "//", "//****:****@", 1) + "/masked"}, 1},
		{map[string]string{"name": "all", "url": "all"}, 1},
		{nil, 7},
	} {
		for _, metric := range []string{"http_reqs", "http_req_duration", "http_req_blocked", "http_req_connecting", "http_req_tls_handshaking",
			"http_req_sending", "http_req_waiting", "http_req_receiving"} {
			if n := o.Count(metric, c.tags); float64(n) != c.want {
				t.Errorf("%d samples of %s with %v, want %v", n, metric, c.tags, c.want)
			}
		}
	}
	if n, failed := o.Count("http_req_failed", nil), o.Sum("http_req_failed", nil); n != 6 || failed != 1 {
		t.Errorf("%d samples of http_req_failed, %v of them 1; want 6 and 1", n, failed)
	}
	if strings.Contains(o.Log, "secret") {
		t.Errorf("a password is logged: %s", o.Log)
	}
}

func TestExpectedStatuses(t *testing.T) {
	o := passes(t, 1, serve(t), `http.setResponseCallback(http.expectedStatuses(404, { min: 500, max: 502 }));
		---
		for (const s of [200, 404, 499, 500, 502, 503]) http.get(B + '/status/' + s);
		http.get(B + '/status/418', { responseCallback: http.expectedStatuses(418) });
		http.setResponseCallback(null);
		http.get(B + '/status/200', { tags: { judged: 'no' } });
		const throws = (f) => { try { f(); return false; } catch (e) { return true; } };
		same('what is no status', [() => http.expectedStatuses(), () => http.expectedStatuses('200'), () => http.expectedStatuses({ min: 1 }), () => http.setResponseCallback(200)].map(throws), [true, true, true, true]);`)
	if n, failed := o.Count("http_req_failed", nil), o.Sum("http_req_failed", nil); n != 7 || failed != 3 {
		t.Errorf("%d judged, %v failed; want 7 and 3", n, failed)
	}
	if n := o.Count("http_reqs", map[string]string{"judged": "no", "expected_response": "true"}); n != 0 {
		t.Error("a response that nobody judged has the tag expected_response")
	}
}

func TestAuthentication(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/digest" && !strings.HasPrefix(r.Header.Get("Authorization"), `Digest username="u", realm="r \"q\"", nonce="n"`) {
			w.Header().Add("WWW-Authenticate", "Basic realm=x")
			w.Header().Add("WWW-Authenticate", `Digest realm="r \"q\"", nonce="n", qop="auth", algorithm=SHA-256, opaque="o"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		io.WriteString(w, r.Header.Get("Authorization"))
	}))
	defer s.Close()
	o := passes(t, 6, s.URL, `
		const at = B.replace('//', '//u:p%40@');
		same('basic', [http.get(at).body, http.get(at, { auth: 'basic' }).body], ['Basic dTpwQA==', 'Basic dTpwQA==']);
		same('own header', http.get(at, { headers: { Authorization: 'mine' } }).body, 'mine');
		const d = http.get(at + '/digest', { auth: 'digest' });
		same('digest', [d.status, d.body.includes('qop=auth'), d.body.includes('opaque="o"'), d.url], [200, true, true, at + '/digest']);
		same('no challenge', http.get(at + '/plain', { auth: 'digest', tags: { plain: 'y' } }).status, 200);
		same('ntlm', [http.get(at, { auth: 'ntlm' }).status, http.get(at, { auth: 'ntlm' }).error.includes('ntlm is not supported')], [0, true]);
		same('unknown is ignored', http.get(B, { auth: 'bearer' }).status, 200);`)
	digest := map[string]string{"url": strings.Replace(s.URL, "//", "//****:****@", 1) + "/digest"}
	if n, failed := o.Sum("http_reqs", digest), o.Sum("http_req_failed", digest); n != 2 || failed != 0 {
		t.Errorf("digest made %v requests, %v of them failed; want 2 and 0", n, failed)
	}
	if failed := o.Sum("http_req_failed", map[string]string{"plain": "y"}); failed != 1 {
		t.Errorf("%v requests without the expected challenge failed, want 1", failed)
	}
}

func TestFormsAndLinks(t *testing.T) {
	passes(t, 10, serve(t), `
		const r = http.get(B + '/page');
		const throws = (f) => { try { f(); return false; } catch (e) { return true; } };
		same('first link', r.clickLink().json('query'), 'from=link');
		same('a link', r.clickLink({ selector: 'a.two', params: { headers: { 'X-A': 'b' } } }).json('header.X-A'), ['b']);
		same('no link', [throws(() => r.clickLink({ selector: 'b' })), throws(() => r.clickLink({ selector: 'a:not([href])' }))], [true, true]);
		same('get', r.submitForm().json('query'), 'go=1&q=v');
		const post = r.submitForm({ formSelector: '#post', fields: { user: 'bob', more: 'm' } }).json();
		same('post', [post.method, post.path, post.body], ['POST', '/echo', 'act=save&many=a&many=b&more=m&token=t7&user=bob']);
		same('button', r.submitForm({ formSelector: '#post', submitSelector: '.other' }).json('body').includes('act=drop'), true);
		same('params', r.submitForm({ params: { headers: { 'X-A': 'b' } } }).json('header.X-A'), ['b']);
		same('no form', throws(() => r.submitForm({ formSelector: 'nope' })), true);
		same('no body', throws(() => http.get(B + '/page', { responseType: 'none' }).submitForm()), true);
		same('selection', r.html().find('title').text() + r.html('a').size(), 'T3');`)
}
