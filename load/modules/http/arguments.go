package k6http

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/grafana/sobek"

	"github.com/metachaos/metachaos/load/modules/wire"
	"github.com/metachaos/metachaos/results"
)

// request is what a script asks for. It does not change once it is read.
type request struct {
	method string
	to     *address
	name   string // of http.url; empty without
	body   *body  // nil sends none
	params

	vuTags *results.Tags // those of the VU when the request was made
}

// Forms of the functions of a request: url, body, params and url, params.
const (
	withBody    = true
	withoutBody = false
)

// call is http.get and its like.
func (c *client) call(method string, call sobek.FunctionCall, hasBody bool) sobek.Value {
	if hasBody {
		return c.do(method, call.Argument(0), call.Argument(1), call.Argument(2))
	}
	return c.do(method, call.Argument(0), nil, call.Argument(1))
}

// request is http.request(method, url, body, params).
func (c *client) request(call sobek.FunctionCall) sobek.Value {
	return c.do(call.Argument(0).String(), call.Argument(1), call.Argument(2), call.Argument(3))
}

// do reads a request, performs it and returns the response.
func (c *client) do(method string, url, content, params sobek.Value) sobek.Value {
	l := c.ready()
	r, err := c.read(method, url, content, params)
	if err != nil {
		return c.refused(r, err)
	}
	ctx := c.host.Context()
	l.closeWith(ctx)
	o := l.perform(ctx, r)
	c.report(ctx, o)
	if o.err != nil && r.throw {
		c.throw("%w", o.err)
	}
	return c.response(o)
}

// read reads the arguments of a request. With an error, the request holds
// what could be read.
func (c *client) read(method string, url, content, params sobek.Value) (*request, error) {
	r := &request{method: method, vuTags: c.host.Tags()}
	r.params = c.defaults()
	// read before the URL, as they decide whether a bad one throws
	if err := c.readParams(&r.params, params); err != nil {
		return r, err
	}
	var err error
	if r.to, r.name, err = c.readURL(url); err != nil {
		return r, err
	}
	if content == nil || wire.Absent(content) {
		return r, nil
	}
	if r.body, err = c.readBody(content); err != nil {
		return r, err
	}
	return r, r.finishBody(c)
}

// finishBody compresses the body and sets the headers that tell of it.
func (r *request) finishBody(c *client) error {
	if r.body.contentType != "" && (r.body.multipart || r.header.Get("Content-Type") == "") {
		r.ownHeader()
		r.header.Set("Content-Type", r.body.contentType)
	}
	if r.compression != "" {
		wired, err := compress(r.body.wire, r.compression)
		if err != nil {
			return fmt.Errorf("params.compression: %w", err)
		}
		r.body.wire = wired
		r.ownHeader()
		r.header.Set("Content-Encoding", r.compression)
	}
	if length := r.header.Get("Content-Length"); length != "" && length != itoa(len(r.body.wire)) {
		c.host.Logger().Warn(fmt.Sprintf("%s %s: the header Content-Length: %s is ignored, as the body has %d bytes",
			r.method, r.to.clean, length, len(r.body.wire)))
	}
	return nil
}

// refused is what comes of a request that cannot be made: a response with the
// status 0, or an exception if the options ask for one.
func (c *client) refused(r *request, err error) sobek.Value {
	if r.throw {
		c.throw("%w", err)
	}
	return c.response(c.refusal(r, err))
}

func (c *client) refusal(r *request, err error) *outcome {
	c.warn(err)
	if r.to == nil {
		r.to = &address{}
	}
	o := &outcome{request: r, final: r.to, done: time.Now()}
	o.fail(err)
	return o
}

// warn logs that a request came to nothing.
func (c *client) warn(err error) {
	c.host.Logger().Warn("Request Failed", "error", err.Error(), "vu", c.host.VU())
}

// ownHeader makes the headers the request's own, which it may share until then.
func (r *request) ownHeader() {
	if r.sharedHeader {
		r.header, r.sharedHeader = r.header.Clone(), false
	}
}

// firstLeg is the request as it goes out first.
func (r *request) firstLeg() leg {
	g := leg{method: r.method, to: r.to, header: r.header, host: r.host, body: r.body}
	if user := r.to.url.User; user != nil && r.auth != authDigest && g.header.Get("Authorization") == "" {
		g.header = g.header.Clone()
		password, _ := user.Password()
		g.header.Set("Authorization", basicAuth(user.Username(), password))
	}
	return g
}

// leg is one request on the way, redirects being further ones.
type leg struct {
	method string
	to     *address
	header http.Header
	host   string // of the header Host; empty is that of the URL
	body   *body
}

// size is that of the body.
func (g leg) size() int {
	if g.body == nil {
		return 0
	}
	return len(g.body.wire)
}

// crosses reports whether a leg goes to another host than one before, which
// credentials must not follow.
func (g leg) crosses(from leg) bool {
	a, b := strings.ToLower(from.to.url.Hostname()), strings.ToLower(g.to.url.Hostname())
	return a != b && !strings.HasSuffix(b, "."+a)
}
