package k6cases

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

// startServer serves what the scripts talk to until the test ends, and returns
// its base URL.
func startServer(t *testing.T) string {
	t.Helper()
	s := httptest.NewUnstartedServer(handler())
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.CloseClientConnections)
	t.Cleanup(s.Close)
	return s.URL
}

func one(v []string) any {
	if len(v) == 1 {
		return v[0]
	}
	return v
}

func flat(m map[string][]string) map[string]any {
	out := map[string]any{}
	for k, v := range m {
		out[k] = one(v)
	}
	return out
}

func writeJSON(w http.ResponseWriter, v any) {
	b, _ := json.Marshal(v)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.Write(b)
}

func tailInt(path, prefix string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(path, prefix))
	return n
}

func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	res := map[string]any{
		"method":  r.Method,
		"path":    r.URL.Path,
		"query":   r.URL.RawQuery,
		"args":    flat(r.URL.Query()),
		"headers": flat(r.Header),
		"host":    r.Host,
		"proto":   r.Proto,
		"length":  r.ContentLength,
		"data":    string(body),
		"md5":     hex.EncodeToString(md5sum(body)),
		"size":    len(body),
	}
	ct := r.Header.Get("Content-Type")
	r.Body = io.NopCloser(bytes.NewReader(body))
	switch {
	case strings.HasPrefix(ct, "application/x-www-form-urlencoded"):
		if r.ParseForm() == nil {
			res["form"] = flat(r.PostForm)
		}
	case strings.HasPrefix(ct, "multipart/form-data"):
		if r.ParseMultipartForm(8<<20) == nil {
			res["form"] = flat(r.MultipartForm.Value)
			files := map[string]any{}
			for k, fs := range r.MultipartForm.File {
				f, _ := fs[0].Open()
				b, _ := io.ReadAll(f)
				files[k] = map[string]any{"filename": fs[0].Filename, "type": fs[0].Header.Get("Content-Type"), "size": len(b), "md5": hex.EncodeToString(md5sum(b))}
			}
			res["files"] = files
		}
	case strings.HasPrefix(ct, "application/json"):
		var v any
		if json.Unmarshal(body, &v) == nil {
			res["json"] = v
		}
	}
	writeJSON(w, res)
}

func md5sum(b []byte) []byte { s := md5.Sum(b); return s[:] }

const page = `<!DOCTYPE html>
<html lang="en">
<head><title>Shelf of items</title><meta charset="utf-8"></head>
<body>
<h1 id="top" class="big loud" data-kind="head">Items</h1>
<ul id="list">
<li class="item" data-price="3">pear</li>
<li class="item chosen" data-price="5">plum</li>
<li class="item" data-price="8">fig</li>
</ul>
<p>Some <b>bold</b> words.</p>
<a href="/get?from=html">first link</a>
<a href="/status/204" class="second">second link</a>
<form id="f" action="/post" method="post">
<input type="hidden" name="token" value="tok-77">
<input type="text" name="user" value="ada">
<input type="checkbox" name="agree" value="yes" checked>
<select name="size"><option value="s">S</option><option value="m" selected>M</option></select>
<textarea name="note">hello</textarea>
<input type="submit" name="go" value="Send">
</form>
</body>
</html>
`

// handler is the whole server.
func handler() http.Handler {
	mux := http.NewServeMux()
	for _, add := range []func(*http.ServeMux){handleRequests, handleRedirects, handleCookies, handleEncodings, handleAuth, handleContent, handleConnections} {
		add(mux)
	}
	mux.HandleFunc("/ws", wsEcho)
	mux.HandleFunc("/cases.Echo/Say", grpcSay)
	mux.HandleFunc("/cases.Echo/Fail", grpcFail)
	mux.HandleFunc("/cases.Echo/Count", grpcCount)
	return mux
}

// handleRequests serves echoes, statuses and delays.
func handleRequests(mux *http.ServeMux) {
	for _, p := range []string{"/get", "/post", "/put", "/patch", "/delete", "/anything", "/anything/"} {
		mux.HandleFunc(p, echo)
	}
	mux.HandleFunc("/status/", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(tailInt(r.URL.Path, "/status/"))
	})
	mux.HandleFunc("/delay/", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(time.Duration(tailInt(r.URL.Path, "/delay/")) * time.Millisecond):
		case <-r.Context().Done():
			return
		}
		writeJSON(w, map[string]any{"ok": true})
	})
}

// handleRedirects serves redirects.
func handleRedirects(mux *http.ServeMux) {
	mux.HandleFunc("/redirect/", func(w http.ResponseWriter, r *http.Request) {
		n := tailInt(r.URL.Path, "/redirect/")
		to := "/get?redirected=1"
		if n > 1 {
			to = "/redirect/" + strconv.Itoa(n-1)
		}
		w.Header().Set("Location", to)
		w.WriteHeader(302)
	})
	// /redirect-code/CODE: redirects to /anything with the given status
	mux.HandleFunc("/redirect-code/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "/anything/landed")
		w.WriteHeader(tailInt(r.URL.Path, "/redirect-code/"))
	})
	mux.HandleFunc("/redirect-loop", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "/redirect-loop")
		w.WriteHeader(302)
	})
}

// handleCookies serves cookies.
func handleCookies(mux *http.ServeMux) {
	mux.HandleFunc("/cookies/set", func(w http.ResponseWriter, r *http.Request) {
		for k, v := range r.URL.Query() {
			http.SetCookie(w, &http.Cookie{Name: k, Value: v[0], Path: "/"})
		}
		writeJSON(w, map[string]any{"set": len(r.URL.Query())})
	})
	mux.HandleFunc("/cookies/rich", func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "rich", Value: "v1", Path: "/cookies", HttpOnly: true, MaxAge: 600})
		writeJSON(w, map[string]any{"ok": true})
	})
	mux.HandleFunc("/cookies/set-redirect", func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "hop", Value: "1", Path: "/"})
		w.Header().Set("Location", "/cookies")
		w.WriteHeader(302)
	})
	mux.HandleFunc("/cookies", func(w http.ResponseWriter, r *http.Request) {
		m := map[string]any{}
		for _, c := range r.Cookies() {
			if old, ok := m[c.Name]; ok {
				m[c.Name] = fmt.Sprint(old, ",", c.Value)
			} else {
				m[c.Name] = c.Value
			}
		}
		writeJSON(w, map[string]any{"cookies": m, "raw": r.Header.Get("Cookie")})
	})
}
