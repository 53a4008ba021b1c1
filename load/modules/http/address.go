package k6http

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/grafana/sobek"
)

// address is a URL, parsed once, with the texts that are made of it.
type address struct {
	url   *url.URL
	text  string
	clean string // text with its credentials masked: what samples and logs show
}

func newAddress(u *url.URL) *address {
	a := &address{url: u, text: u.String()}
	a.clean = a.text
	if u.User != nil {
		mask := "****"
		if _, ok := u.User.Password(); ok {
			mask = "****:****"
		}
		a.clean = strings.Replace(a.text, "//"+u.User.String()+"@", "//"+mask+"@", 1)
	}
	return a
}

// parseAddress reads a URL. One that has no scheme or host is for the
// transport to refuse.
func parseAddress(text string) (*address, error) {
	u, err := url.Parse(text)
	if err != nil {
		var parse *url.Error
		if errors.As(err, &parse) {
			err = fmt.Errorf("%q: %w", maskText(text), parse.Err)
		}
		return nil, &invalidURLError{err}
	}
	return newAddress(u), nil
}

// maskText hides what may be credentials in a text that is no URL.
func maskText(text string) string {
	start := strings.Index(text, "//") + len("//")
	end := strings.LastIndexByte(text, '@')
	if start < len("//") || end < start {
		return text
	}
	return text[:start] + "****" + text[end:]
}

// template is what http.url`…` makes: an address, and a name that is the same
// for all values of its placeholders.
type template struct{ url, name string }

// placeholder stands in the name of a template for each value.
const placeholder = "${}"

// templateURL is http.url, the tag of a template literal.
func (c *client) templateURL(call sobek.FunctionCall) sobek.Value {
	texts, ok := call.Argument(0).(*sobek.Object)
	if !ok {
		c.throw("http.url: want a template literal: http.url`https://host/${id}`")
	}
	var t template
	var address, name strings.Builder
	for i, n := 0, int(texts.Get("length").ToInteger()); i < n; i++ {
		text := texts.Get(itoa(i)).String()
		address.WriteString(text)
		name.WriteString(text)
		if i+1 < n {
			address.WriteString(call.Argument(i + 1).String())
			name.WriteString(placeholder)
		}
	}
	t.url, t.name = address.String(), name.String()
	o := newRecord(c.rt, &t, "url", c.rt.ToValue(t.url), "name", c.rt.ToValue(t.name))
	// setting a plain property cannot fail
	_ = o.Prototype().Set("toString", native(func(sobek.FunctionCall) sobek.Value { return c.rt.ToValue(t.url) }))
	return o
}

// readURL reads the URL of a request and, of a template, its name.
func (c *client) readURL(v sobek.Value) (at *address, name string, err error) {
	var text string
	if t, ok := recordOf[*template](v); ok {
		text, name = t.url, t.name
	} else {
		text = v.String()
	}
	if at, ok := c.addresses.get(text); ok {
		return at, name, nil
	}
	if at, err = parseAddress(text); err != nil {
		return nil, "", err
	}
	c.addresses.put(text, at)
	return at, name, nil
}
