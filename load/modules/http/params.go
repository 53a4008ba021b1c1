package k6http

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/grafana/sobek"

	"github.com/metachaos/metachaos/load/modules/wire"
)

// params are the last argument of a request.
type params struct {
	header       http.Header
	sharedHeader bool   // header belongs to others too
	host         string // of the header Host
	tags         string // of the samples, as encodeTags writes them
	cookies      []cookieParam
	jar          *jar // nil has no cookies
	timeout      time.Duration
	redirects    int
	limited      bool // redirects was set by the request
	auth         string
	compression  string
	responseType string
	expected     *statuses // nil judges nothing
	throw        bool
}

// cookieParam is a cookie of one request. It is sent beside one of the jar
// with its name, or replaces it.
type cookieParam struct {
	name, value string
	replace     bool
}

// Values of params.auth.
const (
	authBasic  = "basic"
	authDigest = "digest"
	authNTLM   = "ntlm"
)

// Values of params.responseType.
const (
	typeText   = "text"
	typeBinary = "binary"
	typeNone   = "none"
)

// defaultTimeout bounds a request that says nothing else.
const defaultTimeout = time.Minute

// defaults are the params of a request that has none.
func (c *client) defaults() params {
	o := c.line.options
	p := params{header: c.line.agent, sharedHeader: true, jar: c.currentJar(), timeout: defaultTimeout,
		redirects: o.MaxRedirects, responseType: typeText, expected: c.expected, throw: o.Throw}
	if o.DiscardResponseBodies {
		p.responseType = typeNone
	}
	return p
}

// readParams reads params over the defaults. Names that mean nothing are
// ignored, as k6 does.
func (c *client) readParams(p *params, v sobek.Value) error {
	if wire.Absent(v) {
		return nil
	}
	o, ok := v.(*sobek.Object)
	if !ok {
		return fmt.Errorf("params: want an object, got %s", v)
	}
	var failed error
	for _, name := range o.Keys() {
		// all are read in spite of an error, as throw decides what becomes of it
		if err := c.readParam(p, name, o.Get(name)); err != nil && failed == nil {
			failed = fmt.Errorf("params.%s: %w", name, err)
		}
	}
	return failed
}

func (c *client) readParam(p *params, name string, v sobek.Value) (err error) {
	switch name {
	case "headers":
		return p.readHeaders(v)
	case "tags":
		p.tags, err = encodeTags(v)
	case "cookies":
		return p.readCookies(v)
	case "jar":
		if !wire.Absent(v) {
			p.jar, err = readJar(v)
		}
	case "timeout":
		p.timeout, err = wire.Duration(v)
	case "redirects":
		if !wire.Absent(v) {
			p.redirects, p.limited = int(v.ToInteger()), true
		}
	case "auth":
		return p.readAuth(c, v)
	case "compression":
		if !wire.Absent(v) {
			p.compression = v.String()
		}
	case "responseType":
		if !wire.Absent(v) {
			p.responseType = v.String()
			err = oneOf("response type", p.responseType, typeText, typeBinary, typeNone)
		}
	case "responseCallback":
		p.expected, err = readExpected(v)
	case "throw":
		p.throw = v.ToBoolean()
	}
	return err
}

func (p *params) readHeaders(v sobek.Value) error {
	if wire.Absent(v) {
		return nil
	}
	o, ok := v.(*sobek.Object)
	if !ok {
		return fmt.Errorf("want an object, got %s", v)
	}
	keys := o.Keys()
	if len(keys) == 0 {
		return nil
	}
	own := make(http.Header, len(keys)+2)
	for name, values := range p.header {
		own[name] = values
	}
	for _, name := range keys {
		value := o.Get(name).String()
		if strings.EqualFold(name, "Host") {
			p.host = value
			continue
		}
		own.Set(name, value)
	}
	p.header, p.sharedHeader = own, false
	return nil
}

func (p *params) readCookies(v sobek.Value) error {
	if wire.Absent(v) {
		return nil
	}
	o, ok := v.(*sobek.Object)
	if !ok {
		return fmt.Errorf("want an object, got %s", v)
	}
	for _, name := range o.Keys() {
		cookie := cookieParam{name: name}
		value := o.Get(name)
		if full, ok := value.(*sobek.Object); ok {
			if replace := full.Get("replace"); replace != nil {
				cookie.replace = replace.ToBoolean()
			}
			value = full.Get("value")
		}
		if !wire.Absent(value) {
			cookie.value = value.String()
		}
		p.cookies = append(p.cookies, cookie)
	}
	return nil
}

func (p *params) readAuth(c *client, v sobek.Value) error {
	if wire.Absent(v) {
		return nil
	}
	p.auth = v.String()
	switch p.auth {
	case "", authBasic, authDigest:
	case authNTLM:
		return fmt.Errorf("ntlm is not supported: want basic or digest")
	default:
		c.host.Logger().Warn(fmt.Sprintf("params.auth: %q means nothing and is ignored: want basic or digest", p.auth))
	}
	return nil
}

// encodeTags writes tags as names and values that each end with a zero byte.
func encodeTags(v sobek.Value) (string, error) {
	if wire.Absent(v) {
		return "", nil
	}
	o, ok := v.(*sobek.Object)
	if !ok {
		return "", fmt.Errorf("want an object, got %s", v)
	}
	var b strings.Builder
	for _, name := range o.Keys() {
		writeTag(&b, name, o.Get(name).String())
	}
	return b.String(), nil
}

func writeTag(b *strings.Builder, name, value string) {
	for _, text := range [...]string{name, value} {
		b.WriteString(strings.ReplaceAll(text, "\x00", ""))
		b.WriteByte(0)
	}
}

// decodeTags calls f for each of the tags that encodeTags wrote.
func decodeTags(text string, f func(name, value string)) {
	for text != "" {
		var name, value string
		name, text, _ = strings.Cut(text, "\x00")
		value, text, _ = strings.Cut(text, "\x00")
		f(name, value)
	}
}

func basicAuth(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}
