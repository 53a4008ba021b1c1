package k6cases

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// handleEncodings serves compressed bodies.
func handleEncodings(mux *http.ServeMux) {
	mux.HandleFunc("/gzip", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		io.WriteString(z, `{"gzipped":true,"pad":"`+strings.Repeat("a", 2000)+`"}`)
		z.Close()
	})
	mux.HandleFunc("/deflate", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "deflate")
		z := zlib.NewWriter(w)
		io.WriteString(z, `{"deflated":true}`)
		z.Close()
	})
	mux.HandleFunc("/bad-gzip", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		io.WriteString(w, "this is not gzip")
	})
	// echoes the request body after undoing its Content-Encoding
	mux.HandleFunc("/decompress", func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		b := raw
		for _, enc := range strings.Split(r.Header.Get("Content-Encoding"), ",") {
			switch strings.TrimSpace(enc) {
			case "gzip":
				if z, err := gzip.NewReader(bytes.NewReader(b)); err == nil {
					b, _ = io.ReadAll(z)
				}
			case "deflate":
				if z, err := zlib.NewReader(bytes.NewReader(b)); err == nil {
					b, _ = io.ReadAll(z)
				} else {
					b, _ = io.ReadAll(flate.NewReader(bytes.NewReader(b)))
				}
			}
		}
		writeJSON(w, map[string]any{"encoding": r.Header.Get("Content-Encoding"), "data": string(b), "wire": len(raw)})
	})
}

// handleAuth serves authentication.
func handleAuth(mux *http.ServeMux) {
	mux.HandleFunc("/basic-auth/", func(w http.ResponseWriter, r *http.Request) {
		p := strings.Split(strings.TrimPrefix(r.URL.Path, "/basic-auth/"), "/")
		u, pw, ok := r.BasicAuth()
		if !ok || len(p) != 2 || u != p[0] || pw != p[1] {
			w.Header().Set("WWW-Authenticate", `Basic realm="cases"`)
			w.WriteHeader(401)
			return
		}
		writeJSON(w, map[string]any{"authenticated": true, "user": u})
	})
	mux.HandleFunc("/digest-auth/", func(w http.ResponseWriter, r *http.Request) {
		p := strings.Split(strings.TrimPrefix(r.URL.Path, "/digest-auth/"), "/")
		h := r.Header.Get("Authorization")
		if len(p) == 2 && strings.HasPrefix(h, "Digest ") {
			f := map[string]string{}
			for _, kv := range strings.Split(h[7:], ",") {
				k, v, _ := strings.Cut(strings.TrimSpace(kv), "=")
				f[k] = strings.Trim(v, `"`)
			}
			hx := func(s string) string { return hex.EncodeToString(md5sum([]byte(s))) }
			a1, a2 := hx(p[0]+":cases:"+p[1]), hx(r.Method+":"+f["uri"])
			if f["username"] == p[0] && f["response"] == hx(a1+":"+f["nonce"]+":"+f["nc"]+":"+f["cnonce"]+":"+f["qop"]+":"+a2) {
				writeJSON(w, map[string]any{"authenticated": true, "user": p[0]})
				return
			}
		}
		w.Header().Set("WWW-Authenticate", `Digest realm="cases", nonce="n0nce77", qop="auth", algorithm=MD5`)
		w.WriteHeader(401)
	})
}

// handleContent serves bodies of several kinds.
func handleContent(mux *http.ServeMux) {
	mux.HandleFunc("/bytes/", func(w http.ResponseWriter, r *http.Request) {
		b := make([]byte, tailInt(r.URL.Path, "/bytes/"))
		for i := range b {
			b[i] = byte(i)
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Write(b)
	})
	mux.HandleFunc("/html", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, page)
	})
	mux.HandleFunc("/json", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, json.RawMessage(`{"user":{"name":"ada","age":36,"tags":["x","y"]},"items":[{"id":1,"ok":true},{"id":2,"ok":false},{"id":3,"ok":true}],"nil":null,"pi":3.25}`))
	})
	mux.HandleFunc("/headers", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Single", "one")
		w.Header().Add("X-Multi", "a")
		w.Header().Add("X-Multi", "b")
		w.Header()["x-lower-case"] = []string{"lc"}
		io.WriteString(w, "headers")
	})
}

// handleConnections serves streams, and connections that break.
func handleConnections(mux *http.ServeMux) {
	mux.HandleFunc("/stream", func(w http.ResponseWriter, r *http.Request) {
		for i := range 3 {
			fmt.Fprintf(w, "chunk%d\n", i)
			w.(http.Flusher).Flush()
			time.Sleep(20 * time.Millisecond)
		}
	})
	// drops the connection without answering
	mux.HandleFunc("/close", func(w http.ResponseWriter, r *http.Request) {
		if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
			c.Close()
		}
	})
	// promises 100 bytes, sends 10, drops the connection
	mux.HandleFunc("/truncated", func(w http.ResponseWriter, r *http.Request) {
		if c, rw, err := w.(http.Hijacker).Hijack(); err == nil {
			rw.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123456789")
			rw.Flush()
			c.Close()
		}
	})
	// the remote port of this connection, so that scripts can see reuse
	mux.HandleFunc("/conn", func(w http.ResponseWriter, r *http.Request) {
		_, port, _ := net.SplitHostPort(r.RemoteAddr)
		writeJSON(w, map[string]any{"port": port})
	})
}
