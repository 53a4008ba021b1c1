package k6http

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/metachaos/metachaos/load/modules/wire/wiretest"
	"github.com/metachaos/metachaos/load/script"
)

// FuzzTemplateURL checks that a name is the same for all values of its
// placeholders, and that an address holds them as they are.
func FuzzTemplateURL(f *testing.F) {
	f.Add("http://h/", "?q=", "1", "2")
	f.Add("", "", "${}", "\x00")
	f.Add("http://[", "]", "ü", "`")
	f.Fuzz(func(t *testing.T, before, after, one, two string) {
		in, err := json.Marshal([]string{before, after, one, two})
		if err != nil {
			t.Fatal(err)
		}
		o := wiretest.Play(t, script.Config{Modules: map[string]script.Module{ImportPath: New()}, Env: map[string]string{"IN": string(in)}}, map[string]string{"script.js": `
			import http from 'k6/http';
			const [before, after, one, two] = JSON.parse(__ENV.IN);
			const strings = [before, after];
			const a = http.url(strings, one), b = http.url(strings, two);
			if (a.name !== b.name || a.name !== before + '$' + '{}' + after) throw new Error('name ' + a.name);
			if (a.url !== before + one + after || String(b) !== before + two + after) throw new Error('url ' + a.url);
			export default function () {}`})
		if o.Err != nil {
			t.Error(o.Err)
		}
	})
}

// FuzzTags checks that whatever tags a script gives come out as they went in.
func FuzzTags(f *testing.F) {
	f.Add("name", "value", "other", "")
	f.Add("", "a=b&c", "k\x00", "v\x00")
	f.Fuzz(func(t *testing.T, k1, v1, k2, v2 string) {
		clean := strings.NewReplacer("\x00", "").Replace
		want := map[string]string{clean(k1): clean(v1), clean(k2): clean(v2)}
		var b strings.Builder
		writeTag(&b, k1, v1)
		writeTag(&b, k2, v2)
		got := map[string]string{}
		decodeTags(b.String(), func(name, value string) { got[name] = value })
		if len(got) != len(want) {
			t.Fatalf("%q became %q", want, got)
		}
		for k, v := range want {
			if got[k] != v {
				t.Errorf("tag %q is %q, want %q", k, got[k], v)
			}
		}
	})
}

// FuzzAddress checks that no part of credentials is shown.
func FuzzAddress(f *testing.F) {
	f.Add("http://user:secret@host/path")
	f.Add("http://h/@x")
	f.Add("//u:p@[::1]:80")
	f.Fuzz(func(t *testing.T, text string) {
		a, err := parseAddress(text)
		if err != nil {
			return
		}
		if a.url.User == nil {
			if a.clean != a.text {
				t.Errorf("%q is shown as %q", a.text, a.clean)
			}
			return
		}
		shown, err := parseAddress(a.clean)
		if err != nil {
			t.Fatalf("%q is shown as %q, which is no address: %v", text, a.clean, err)
		}
		if p, _ := shown.url.User.Password(); strings.Trim(shown.url.User.Username()+p, "*") != "" || shown.url.Host != a.url.Host {
			t.Errorf("%q is shown as %q", text, a.clean)
		}
	})
}

// FuzzChallenge checks that whatever a server demands is read or refused.
func FuzzChallenge(f *testing.F) {
	f.Add(`Digest realm="a \"b", nonce=n, qop="auth,auth-int"`)
	f.Add(`Digest =,=",\`)
	f.Fuzz(func(t *testing.T, header string) {
		if c, ok := parseChallenge(header); ok && c.nonce == "" {
			t.Errorf("%q has no nonce", header)
		}
	})
}

// FuzzDecompress checks that bytes in no known form end in an error.
func FuzzDecompress(f *testing.F) {
	for _, name := range []string{encodingGzip, encodingDeflate, encodingBrotli, encodingZstd} {
		content, err := compress([]byte("content"), name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content, name)
	}
	f.Fuzz(func(t *testing.T, content []byte, list string) {
		if len(content) > 256 { // small bombs suffice
			return
		}
		if out, err := decompress(content, list); err != nil && out != nil {
			t.Errorf("%q: content beside %v", list, err)
		}
	})
}
