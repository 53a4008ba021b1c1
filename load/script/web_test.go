package script

import (
	"strings"
	"testing"
)

func TestURL(t *testing.T) {
	passes(t, 14, script(`
		import { check } from 'k6';
		export default function () {
			const u = new URL('../b?x=1&y=a%20b#top', 'HTTPS://Ada:pw@Example.com:443/a/c/');
			const threw = (f) => { try { f(); return ''; } catch (e) { return e.constructor.name; } };
			const set = new URL('http://h/p?q=1');
			set.pathname = 'a b/../c'; set.search = 'k=v#w'; set.hash = 'f'; set.port = '8080'; set.hostname = 'Other.example'; set.protocol = 'https';
			const v = new URL('http://h/?a=1');
			v.searchParams.append('b', 'x y&z');
			const p = new URLSearchParams({ b: '2', a: 'ä' });
			p.append('b', '3');
			check(null, {
				href: () => u.href === 'https://Ada:pw@example.com/a/b?x=1&y=a%20b#top',
				parts: () => [u.origin, u.protocol, u.host, u.port, u.pathname, u.hash].join(' ') === 'https://example.com https: example.com  /a/b #top',
				params: () => u.searchParams.get('y') === 'a b' && u.searchParams.get('z') === null,
				json: () => JSON.stringify({ u }) === '{"u":"' + u + '"}',
				bad: () => threw(() => new URL('/only/a/path')) === 'TypeError' && !URL.canParse('http://') && URL.canParse('x', 'http://h'),
				setters: () => set.href === 'https://other.example:8080/c?k=v%23w#f',
				written: () => v.href === 'http://h/?a=1&b=x+y%26z' && v.search === '?a=1&b=x+y%26z',
				search: () => { v.search = '?c=9'; return v.searchParams.get('c') === '9' && !v.searchParams.has('a'); },
				text: () => p.toString() === 'b=2&a=%C3%A4&b=3',
				all: () => p.getAll('b').join() === '2,3' && p.size === 3,
				list: () => [...p].map((x) => x.join(':')).join() === 'b:2,a:ä,b:3',
				pairs: () => new URLSearchParams([['a', 1]]).get('a') === '1' && threw(() => new URLSearchParams([['a']])) === 'TypeError',
				sorted: () => { p.sort(); return [...p.keys()].join() === 'a,b,b'; },
				replaced: () => { p.set('b', 'n'); p.delete('a'); return p.toString() === 'b=n'; },
			});
		}`))
}

func TestBase64AndClones(t *testing.T) {
	passes(t, 9, script(`
		import { check } from 'k6';
		export default async function () {
			const threw = (f) => { try { f(); return ''; } catch (e) { return e.name; } };
			const a = { d: new Date(5), m: new Map([['k', [1]]]), s: new Set([2]), u: new Uint8Array([7, 8]) };
			a.self = a;
			const b = structuredClone(a);
			const order = [];
			queueMicrotask(() => order.push('micro'));
			order.push('sync');
			await null;
			const t0 = performance.now();
			check(null, {
				btoa: () => btoa('\u00ff\u0000a') === '/wBh', atob: () => atob(' /wBh ').charCodeAt(0) === 255,
				unpadded: () => atob('YQ') === 'a' && atob('YQ==') === 'a',
				bad: () => threw(() => atob('@')) !== '' && threw(() => btoa('\u2713')) !== '',
				clone: () => b !== a && b.self === b && b.d.getTime() === 5 && b.m.get('k')[0] === 1 && b.m.get('k') !== a.m.get('k') && b.s.has(2),
				bytes: () => b.u[1] === 8 && b.u.buffer !== a.u.buffer,
				uncloneable: () => threw(() => structuredClone({ f() {} })) === 'DataCloneError',
				order: () => order.join() === 'sync,micro',
				clock: () => performance.now() >= t0 && performance.timeOrigin > 9e11,
			});
		}`))
}

func TestParseWebURL(t *testing.T) {
	for _, c := range []struct{ text, base, want string }{
		{"http://h", "", "http://h/"},
		{" http://h/ \n", "", "http://h/"},
		{`http:\\h\a\b`, "", "http://h/a/b"},
		{"http:h", "", "http://h/"},
		{"http://h:80/", "", "http://h/"},
		{"http://h:081/", "", "http://h:81/"},
		{"http://[::0001]:9/", "", "http://[::1]:9/"},
		{"http://bücher.example/ü?ü#ü", "", "http://xn--bcher-kva.example/%C3%BC?%C3%BC#%C3%BC"},
		{"http://h/a/./b/%2e%2e/c/..", "", "http://h/a/"},
		{"http://h/a b'?a b'", "", "http://h/a%20b'?a%20b%27"},
		{"http://u:p@w:x@h/", "", "http://u:p%40w%3Ax@h/"},
		{"mailto:a@b", "", "mailto:a@b"},
		{"file:///etc/x", "", "file:///etc/x"},
		{"custom://Host/x", "", "custom://Host/x"},
		{"?q", "http://h/a?b#c", "http://h/a?q"},
		{"#f", "http://h/a?b#c", "http://h/a?b#f"},
		{"", "http://h/a?b#c", "http://h/a?b"},
		{"//o/p", "http://h/a", "http://o/p"},
		{"/p", "http://h/a/b", "http://h/p"},
		{"c", "http://h/a/b", "http://h/a/c"},
	} {
		var base *webURL
		if c.base != "" {
			var err error
			if base, err = parseWebURL(c.base, nil); err != nil {
				t.Fatal(err)
			}
		}
		got, err := parseWebURL(c.text, base)
		if err != nil || got.String() != c.want {
			t.Errorf("%q on %q: got %v, %v, want %s", c.text, c.base, got, err, c.want)
		}
	}
	for _, bad := range []string{"", "x", "http://", "http://h:99999/", "http://h:x/", "http://a b/", "http://[::1", "http://[1.2.3.4]/", "1http://h"} {
		if u, err := parseWebURL(bad, nil); err == nil {
			t.Errorf("%q: got %s, want an error", bad, u)
		}
	}
}

func FuzzParseWebURL(f *testing.F) {
	for _, seed := range []string{"http://u:p@h:1/a/../b?q#f", "mailto:x", "//x", "file:///C:/", "http://[::1]/", "a:b%zz"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := parseWebURL(text, nil)
		if err != nil {
			return
		}
		again, err := parseWebURL(u.String(), nil)
		if err != nil {
			t.Fatalf("%q became %q, which is refused: %v", text, u, err)
		}
		if again.String() != u.String() && !strings.Contains(text, "//") {
			t.Errorf("%q became %q, then %q", text, u, again)
		}
	})
}
