package k6http

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/grafana/sobek"
)

func (r *response) body() sobek.Value {
	switch {
	case r.o.content == nil:
		return sobek.Null()
	case r.o.request.responseType == typeBinary:
		return r.client.rt.ToValue(r.client.rt.NewArrayBuffer(r.o.content))
	}
	return r.client.rt.ToValue(string(r.o.content))
}

// headers joins the values of a name, as fields of a list are.
func (r *response) headers() sobek.Value {
	o := r.client.rt.NewObject()
	if r.o.response == nil {
		return o
	}
	header := r.o.response.Header
	for _, name := range sortedKeys(header) {
		set(o, name, strings.Join(header[name], ", "))
	}
	return o
}

func (r *response) cookies() sobek.Value {
	o := r.client.rt.NewObject()
	if r.o.response == nil {
		return o
	}
	lists := map[string][]any{}
	var names []string
	for _, cookie := range r.o.response.Cookies() {
		if lists[cookie.Name] == nil {
			names = append(names, cookie.Name)
		}
		lists[cookie.Name] = append(lists[cookie.Name], r.cookie(cookie))
	}
	for _, name := range names {
		set(o, name, r.client.rt.NewArray(lists[name]...))
	}
	return o
}

func (r *response) cookie(cookie *http.Cookie) *sobek.Object {
	o := r.client.rt.NewObject()
	set(o, "name", cookie.Name)
	set(o, "value", cookie.Value)
	set(o, "domain", cookie.Domain)
	set(o, "path", cookie.Path)
	set(o, "http_only", cookie.HttpOnly)
	set(o, "secure", cookie.Secure)
	set(o, "max_age", cookie.MaxAge)
	set(o, "expires", unixMilli(cookie.Expires))
	return o
}

func (r *response) timings() sobek.Value {
	o, t := r.client.rt.NewObject(), r.o.last().took
	set(o, "duration", milli(t.duration()))
	set(o, "blocked", milli(t.blocked))
	set(o, "looking_up", milli(t.lookingUp))
	set(o, "connecting", milli(t.connecting))
	set(o, "tls_handshaking", milli(t.tlsHandshaking))
	set(o, "sending", milli(t.sending))
	set(o, "waiting", milli(t.waiting))
	set(o, "receiving", milli(t.receiving))
	return o
}

func (r *response) ocsp() sobek.Value {
	o, seen := r.client.rt.NewObject(), r.o.tls().ocsp
	set(o, "produced_at", seen.producedAt)
	set(o, "this_update", seen.thisUpdate)
	set(o, "next_update", seen.nextUpdate)
	set(o, "revoked_at", seen.revoked)
	set(o, "revocation_reason", seen.reason)
	set(o, "status", seen.status)
	return o
}

// request tells what was asked for, before any redirect.
func (r *response) request() sobek.Value {
	o, rt, asked := r.client.rt.NewObject(), r.client.rt, r.o.request
	set(o, "method", asked.method)
	set(o, "url", asked.to.text)
	headers := rt.NewObject()
	for _, name := range sortedKeys(asked.header) {
		set(headers, name, rt.NewArray(anys(asked.header[name])...))
	}
	set(o, "headers", headers)
	content := ""
	if asked.body != nil {
		content = string(asked.body.plain)
	}
	set(o, "body", content)
	set(o, "cookies", r.sentCookies())
	return o
}

func (r *response) sentCookies() *sobek.Object {
	rt, o := r.client.rt, r.client.rt.NewObject()
	lists := map[string][]any{}
	add := func(name, value string, replace bool) {
		c := rt.NewObject()
		set(c, "name", name)
		set(c, "value", value)
		set(c, "replace", replace)
		lists[name] = append(lists[name], c)
	}
	for _, c := range r.o.request.cookies {
		add(c.name, c.value, c.replace)
	}
	for _, c := range r.o.cookies {
		if list := lists[c.Name]; list == nil || !list[0].(*sobek.Object).Get("replace").ToBoolean() {
			add(c.Name, c.Value, false)
		}
	}
	for _, name := range sortedKeys(lists) {
		set(o, name, rt.NewArray(lists[name]...))
	}
	return o
}

// set sets a plain property of a fresh object, which cannot fail.
func set(o *sobek.Object, name string, v any) { _ = o.Set(name, v) }

func unixMilli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func anys(texts []string) []any {
	all := make([]any, len(texts))
	for i, t := range texts {
		all[i] = t
	}
	return all
}
