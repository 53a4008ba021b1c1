package k6http

import (
	"slices"

	"github.com/grafana/sobek"
)

// response is what scripts get. Most look at a field or two of it, so each is
// made when it is asked for.
type response struct {
	client *client
	o      *outcome
	made   map[string]sobek.Value // fields that are objects, and those that the script set
	gone   []string               // fields that the script deleted
	json   sobek.Value            // of the whole body
	valid  bool                   // the body is JSON
}

var _ sobek.DynamicObject = (*response)(nil)

func (c *client) response(o *outcome) sobek.Value {
	if c.responses == nil {
		c.responses = c.responsePrototype()
	}
	object := c.rt.NewDynamicObject(&response{client: c, o: o})
	// an extensible object takes any prototype
	_ = object.SetPrototype(c.responses)
	return object
}

// responseFields are in the order in which scripts enumerate them.
func responseFields() []string {
	return []string{"remote_ip", "remote_port", "url", "status", "status_text", "proto", "headers", "cookies", "body", "timings",
		"tls_version", "tls_cipher_suite", "ocsp", "error", "error_code", "request"}
}

// Keys lists the fields, those that the script added last.
func (r *response) Keys() []string {
	keys := slices.DeleteFunc(responseFields(), func(k string) bool { return slices.Contains(r.gone, k) })
	var added []string
	for k := range r.made {
		if !slices.Contains(keys, k) {
			added = append(added, k)
		}
	}
	slices.Sort(added)
	return append(keys, added...)
}

// Has reports whether there is a field.
func (r *response) Has(key string) bool { return r.Get(key) != nil }

// Set replaces or adds a field.
func (r *response) Set(key string, v sobek.Value) bool {
	r.remember(key, v)
	r.gone = slices.DeleteFunc(r.gone, func(k string) bool { return k == key })
	return true
}

// Delete removes a field.
func (r *response) Delete(key string) bool {
	delete(r.made, key)
	r.gone = append(r.gone, key)
	return true
}

func (r *response) remember(key string, v sobek.Value) {
	if r.made == nil {
		r.made = map[string]sobek.Value{}
	}
	r.made[key] = v
}

// Get returns a field, or nil.
func (r *response) Get(key string) sobek.Value {
	if r.made != nil {
		if v, ok := r.made[key]; ok {
			return v
		}
	}
	if len(r.gone) > 0 && slices.Contains(r.gone, key) {
		return nil
	}
	if v := r.plain(key); v != nil {
		return v
	}
	if v := r.object(key); v != nil {
		r.remember(key, v)
		return v
	}
	return nil
}

// plain makes a field that is text or a number.
func (r *response) plain(key string) sobek.Value {
	rt, o := r.client.rt, r.o
	switch key {
	case "status":
		return rt.ToValue(o.last().status)
	case "status_text":
		return rt.ToValue(o.statusText())
	case "url":
		return rt.ToValue(o.final.text)
	case "proto":
		return rt.ToValue(o.last().proto)
	case "remote_ip":
		if at := o.last().remote; at.IsValid() {
			return rt.ToValue(at.Addr().String())
		}
		return rt.ToValue("")
	case "remote_port":
		return rt.ToValue(int(o.last().remote.Port()))
	case "error":
		return rt.ToValue(o.text)
	case "error_code":
		return rt.ToValue(o.code)
	case "tls_version":
		return rt.ToValue(o.tls().version)
	case "tls_cipher_suite":
		return rt.ToValue(o.tls().cipherSuite)
	}
	return nil
}

// object makes a field that is worth keeping.
func (r *response) object(key string) sobek.Value {
	switch key {
	case "body":
		return r.body()
	case "headers":
		return r.headers()
	case "cookies":
		return r.cookies()
	case "timings":
		return r.timings()
	case "ocsp":
		return r.ocsp()
	case "request":
		return r.request()
	}
	return nil
}

func (o *outcome) statusText() string {
	if o.response == nil {
		return ""
	}
	return o.response.Status
}

func (o *outcome) tls() tlsSeen {
	if seen := o.last().tls; seen != nil {
		return *seen
	}
	return tlsSeen{}
}
