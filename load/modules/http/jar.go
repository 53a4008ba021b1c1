package k6http

import (
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/grafana/sobek"

	"github.com/metachaos/metachaos/load/modules/wire"
)

// jar keeps cookies. It is safe for concurrent use.
type jar struct {
	kept *cookiejar.Jar
	used atomic.Bool // until then there is nothing to look for
}

func newJar() *jar {
	kept, _ := cookiejar.New(nil) // never fails
	return &jar{kept: kept}
}

var _ http.CookieJar = (*jar)(nil)

// Cookies returns those that go with a request.
func (j *jar) Cookies(u *url.URL) []*http.Cookie {
	if !j.used.Load() {
		return nil
	}
	return j.kept.Cookies(u)
}

// store keeps the cookies of a response.
func (j *jar) store(u *url.URL, res *http.Response) {
	if len(res.Header["Set-Cookie"]) > 0 {
		j.SetCookies(u, res.Cookies())
	}
}

// SetCookies keeps cookies that came from a URL.
func (j *jar) SetCookies(u *url.URL, cookies []*http.Cookie) {
	j.used.Store(true)
	j.kept.SetCookies(u, cookies)
}

// expire removes cookies by name, as far as they belong to the default path of
// the URL.
func (j *jar) expire(u *url.URL, names ...string) {
	for _, name := range names {
		j.SetCookies(u, []*http.Cookie{{Name: name, MaxAge: -1}})
	}
}

// currentJar returns the jar of the iteration.
func (c *client) currentJar() *jar {
	if c.jar == nil {
		c.jar = newJar()
	}
	return c.jar
}

// cookieJar is http.cookieJar(), the jar of the VU.
func (c *client) cookieJar(sobek.FunctionCall) sobek.Value {
	if c.host.InInit() {
		c.throw("http.cookieJar: there is no cookie jar in init code: call it in the default function, or make one with new http.CookieJar()")
	}
	return c.jarObject(c.currentJar())
}

// jarClass makes the class CookieJar.
func (c *client) jarClass() *sobek.Object {
	class := c.rt.ToValue(func(sobek.ConstructorCall) *sobek.Object { return c.jarObject(newJar()) }).(*sobek.Object)
	prototype := class.Get("prototype").(*sobek.Object)
	for name, method := range map[string]func(*jar, *url.URL, sobek.FunctionCall) sobek.Value{
		"cookiesForURL": c.cookiesForURL, "set": c.setCookie,
		"clear": func(j *jar, u *url.URL, _ sobek.FunctionCall) sobek.Value {
			for _, cookie := range j.Cookies(u) {
				j.expire(u, cookie.Name)
			}
			return sobek.Undefined()
		},
		"delete": func(j *jar, u *url.URL, call sobek.FunctionCall) sobek.Value {
			j.expire(u, call.Argument(1).String())
			return sobek.Undefined()
		},
	} {
		// setting a plain property cannot fail
		_ = prototype.Set(name, native(func(call sobek.FunctionCall) sobek.Value {
			j, err := readJar(call.This)
			if err != nil {
				c.throw("CookieJar.%s: %w", name, err)
			}
			u, err := url.Parse(call.Argument(0).String())
			if err != nil {
				c.throw("CookieJar.%s: %w", name, err)
			}
			return method(j, u, call)
		}))
	}
	return class
}

func (c *client) jarObject(j *jar) *sobek.Object {
	o := newRecord(c.rt, j)
	// an extensible object takes any prototype
	_ = o.SetPrototype(c.jars.Get("prototype").(*sobek.Object))
	return o
}

func readJar(v sobek.Value) (*jar, error) {
	j, ok := recordOf[*jar](v)
	if !ok {
		return nil, fmt.Errorf("want a CookieJar, got %s", v)
	}
	return j, nil
}

// cookiesForURL returns the values of the cookies by name.
func (c *client) cookiesForURL(j *jar, u *url.URL, _ sobek.FunctionCall) sobek.Value {
	values := map[string][]any{}
	var names []string
	for _, cookie := range j.Cookies(u) {
		if values[cookie.Name] == nil {
			names = append(names, cookie.Name)
		}
		values[cookie.Name] = append(values[cookie.Name], cookie.Value)
	}
	o := c.rt.NewObject()
	for _, name := range names {
		_ = o.Set(name, c.rt.NewArray(values[name]...)) // cannot fail, as above
	}
	return o
}

// setCookie is jar.set(url, name, value, {domain, path, expires, max_age,
// secure, http_only}).
func (c *client) setCookie(j *jar, u *url.URL, call sobek.FunctionCall) sobek.Value {
	cookie := &http.Cookie{Name: call.Argument(1).String(), Value: call.Argument(2).String()}
	if options := call.Argument(3); !wire.Absent(options) {
		o, ok := options.(*sobek.Object)
		if !ok {
			c.throw("CookieJar.set: want an object of attributes, got %s", options)
		}
		for _, name := range o.Keys() {
			if err := setAttribute(cookie, name, o.Get(name)); err != nil {
				c.throw("CookieJar.set: %s: %w", name, err)
			}
		}
	}
	j.SetCookies(u, []*http.Cookie{cookie})
	return c.rt.ToValue(true)
}

func setAttribute(cookie *http.Cookie, name string, v sobek.Value) (err error) {
	if wire.Absent(v) {
		return nil
	}
	switch name {
	case "domain":
		cookie.Domain = v.String()
	case "path":
		cookie.Path = v.String()
	case "expires":
		if text := v.String(); text != "" {
			if cookie.Expires, err = http.ParseTime(text); err != nil {
				cookie.Expires, err = time.Parse(time.RFC1123, text)
			}
		}
		if err != nil {
			return fmt.Errorf("want a date such as %q, got %s", time.RFC1123, v)
		}
	case "max_age":
		cookie.MaxAge = int(v.ToInteger())
	case "secure":
		cookie.Secure = v.ToBoolean()
	case "http_only":
		cookie.HttpOnly = v.ToBoolean()
	}
	return nil
}
