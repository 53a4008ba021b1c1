package k6http

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	k6html "github.com/metachaos/metachaos/load/modules/html"
	"github.com/metachaos/metachaos/load/modules/wire/wiretest"
	"github.com/metachaos/metachaos/load/script"
)

// play runs the body of a default function, with B as the base of addresses.
// What comes before a line "---" runs in init code.
func play(t testing.TB, base, code string) wiretest.Outcome {
	t.Helper()
	return wiretest.Play(t, config(base), files(code))
}

// passes is play for code all of whose checks must hold, so many of them.
func passes(t testing.TB, want int, base, code string) wiretest.Outcome {
	t.Helper()
	return wiretest.Passes(t, want, config(base), files(code))
}

func config(base string) script.Config {
	return script.Config{Modules: map[string]script.Module{ImportPath: New(), k6html.ImportPath: k6html.New()}, Env: map[string]string{"B": base}}
}

func files(code string) map[string]string {
	first, body, split := strings.Cut(code, "---\n")
	if !split {
		first, body = "", code
	}
	return map[string]string{"script.js": `import http from 'k6/http';
		import { check, group } from 'k6';
		import exec from 'k6/execution';
		const B = __ENV.B;
		function same(name, got, want) {
			const a = JSON.stringify(got), b = JSON.stringify(want);
			if (a !== b) console.error(name + ': got ' + a + ', want ' + b);
			check(null, { [name]: () => a === b });
		}
		` + first + `
		export default async function () {
		` + body + `
		}`}
}

// serve starts a server that echoes requests and has some pages of its own.
func serve(t testing.TB) string {
	t.Helper()
	s := httptest.NewServer(pages())
	t.Cleanup(s.Close)
	return s.URL
}

func pages() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", echo)
	mux.HandleFunc("/status/", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(number(r)) })
	mux.HandleFunc("/to/", func(w http.ResponseWriter, r *http.Request) { // /to/CODE?where
		w.Header().Set("Location", r.URL.RawQuery)
		w.WriteHeader(number(r))
	})
	mux.HandleFunc("/hops/", func(w http.ResponseWriter, r *http.Request) {
		to := "/landed"
		if n := number(r); n > 1 {
			to = "/hops/" + strconv.Itoa(n-1)
		}
		http.Redirect(w, r, to, http.StatusFound)
	})
	mux.HandleFunc("/set", func(w http.ResponseWriter, r *http.Request) {
		for name, values := range r.URL.Query() {
			http.SetCookie(w, &http.Cookie{Name: name, Value: values[0], Path: "/"})
		}
	})
	mux.HandleFunc("/set-and-go", func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "hop", Value: "1", Path: "/"})
		http.Redirect(w, r, "/landed", http.StatusFound)
	})
	mux.HandleFunc("/encoded/", func(w http.ResponseWriter, r *http.Request) { // /encoded/?LIST
		content, err := compress([]byte(strings.Repeat("abc", 500)), r.URL.RawQuery)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Encoding", r.URL.RawQuery)
		w.Write(content)
	})
	mux.HandleFunc("/garbage/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", r.URL.RawQuery)
		io.WriteString(w, "\xff\xff this is in no encoding at all")
	})
	mux.HandleFunc("/bytes/", func(w http.ResponseWriter, r *http.Request) { w.Write(bytes.Repeat([]byte{'x'}, number(r))) })
	mux.HandleFunc("/json", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"a":{"b":[1,2.5,"x",null,true,{"c":false}]},"t":"ü"}`)
	})
	mux.HandleFunc("/page", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, page) })
	return mux
}

const page = `<html><head><title>T</title></head><body>
<a href="echo?from=link">one</a><a class="two" href="/echo?from=two">two</a><a>none</a>
<form id="get" action="/echo?old=1"><input name="q" value="v"><input type="submit" name="go" value="1"></form>
<form id="post" action="echo" method="post">
<input type="hidden" name="token" value="t7"><input name="user" value="ada"><input type="checkbox" name="no" value="1">
<select name="many" multiple><option selected>a</option><option selected>b</option></select>
<button type="submit" name="act" value="save">Save</button><button type="submit" class="other" name="act" value="drop">Drop</button></form>
</body></html>`

func number(r *http.Request) int {
	n, _ := strconv.Atoi(r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:])
	return n
}

// echo answers with the request as JSON.
func echo(w http.ResponseWriter, r *http.Request) {
	content, _ := io.ReadAll(r.Body)
	out := map[string]any{"method": r.Method, "path": r.URL.Path, "query": r.URL.RawQuery, "host": r.Host, "header": r.Header, "proto": r.Proto,
		"body": string(content), "size": len(content), "length": r.ContentLength, "from": r.RemoteAddr}
	r.Body = io.NopCloser(bytes.NewReader(content))
	if r.ParseMultipartForm(1<<20) == nil {
		parts := map[string]any{}
		for name, list := range r.MultipartForm.File {
			f, _ := list[0].Open()
			text, _ := io.ReadAll(f)
			parts[name] = []any{list[0].Filename, list[0].Header.Get("Content-Type"), string(text)}
		}
		out["files"], out["fields"] = parts, r.MultipartForm.Value
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(out)
}

// rawServer answers each connection by a function and closes it after.
func rawServer(t testing.TB, answer func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				answer(c)
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// closedPort returns the address of a port where nobody listens.
func closedPort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func portOf(t testing.TB, base string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(strings.TrimPrefix(base, "https://"), "http://"))
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", base, err))
	}
	return port
}
