package k6http

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"time"
)

// outcome is what came of a request.
type outcome struct {
	request *request
	hops    []hop
	one     [1]hop // room for the hops of most requests

	response *http.Response // nil with an error; its body is read
	final    *address       // where the response came from
	content  []byte         // nil if there is none, or it is not to be kept
	cookies  []*http.Cookie // of the jar, that went with the first hop

	err  error
	code int
	text string // of the error; empty without
	done time.Time
}

// hop is one exchange with a server: what samples are made of.
type hop struct {
	method string
	to     *address
	status int // 0 without an answer
	proto  string
	tls    *tlsSeen
	remote netip.AddrPort
	code   int
	text   string // of the error; empty without
	judged verdict
	took   timings
	done   time.Time
}

func (o *outcome) fail(err error) {
	o.err = err
	o.code, o.text = classify(err)
	o.response, o.content = nil, nil
}

// last returns the hop that the outcome is of, or an empty one.
func (o *outcome) last() hop {
	if len(o.hops) == 0 {
		return hop{}
	}
	return o.hops[len(o.hops)-1]
}

// perform does a request with the redirects and challenges that come of it. It
// touches nothing of JavaScript and may be called from any goroutine.
func (l *line) perform(ctx context.Context, r *request) *outcome {
	o := &outcome{request: r, final: r.to}
	o.hops = o.one[:0]
	if err := l.limiter.wait(ctx); err != nil {
		o.fail(err)
		return o
	}
	course := course{request: r, deadline: time.Now().Add(r.timeout)}
	for next, at := true, r.firstLeg(); next; {
		at, next = l.hop(ctx, o, &course, at)
	}
	o.done = time.Now()
	return o
}

// hop does one leg of a request. It returns the next one, unless the response
// to this one, or an error, is the outcome.
func (l *line) hop(ctx context.Context, o *outcome, c *course, at leg) (next leg, follow bool) {
	h := hop{method: at.method, to: at.to}
	t := &tracer{start: time.Now()}
	req := l.prepare(o, at)
	res, held, err := l.send(ctx, c.deadline, req, at.size(), t)
	if err == nil {
		next, follow, err = l.receive(o, c, at, res, held)
	} else {
		l.release(held, false)
	}
	err = c.explain(ctx, err)
	h.done = time.Now()
	h.took = t.timings(h.done.Sub(t.start))
	if c := t.conn.Load(); c != nil {
		h.remote = c.remote
	}
	if err != nil {
		o.fail(err)
		h.code, h.text, follow = o.code, o.text, false
	} else {
		o.response, o.final = res, at.to
		h.answered(res)
	}
	h.judged = c.judge(h.status)
	o.hops = append(o.hops, h)
	if !follow && err == nil && h.status >= http.StatusBadRequest {
		o.code = h.code
	}
	if !follow && c.exhausted {
		l.log.Warn(fmt.Sprintf("%s %s: stopped after %d redirects with one more to go; set params.redirects or the option maxRedirects to say how many to follow",
			o.request.method, o.request.to.clean, o.request.redirects))
	}
	return next, follow
}

// receive reads the rest of a response, or what little has to be read of one
// that is not the last, and gives back what it holds.
func (l *line) receive(o *outcome, c *course, at leg, res *http.Response, h held) (next leg, follow bool, err error) {
	o.request.jar.store(at.to.url, res)
	complete := false
	if next, follow, err = c.next(at, res); follow {
		complete = ended(res.Body, maxDrained)
	} else if err == nil {
		o.content, err = readContent(res, o.request.responseType)
		complete = err == nil
	}
	if complete || h.conn == nil { // to close a direct one would be to read it to its end
		res.Body.Close()
	}
	l.release(h, complete && !res.Close && !res.Request.Close && res.StatusCode != http.StatusSwitchingProtocols)
	l.debugResponse(res, o.content)
	return next, follow, err
}

// answered notes what samples tell of a response.
func (h *hop) answered(res *http.Response) {
	h.status, h.proto = res.StatusCode, res.Proto
	if res.TLS != nil {
		h.tls = seenTLS(res.TLS)
	}
	if h.status >= http.StatusBadRequest {
		h.code = 1000 + h.status
	}
}

// prepare makes the request of one leg.
func (l *line) prepare(o *outcome, at leg) *http.Request {
	req := &http.Request{Method: at.method, URL: at.to.url, Host: at.host, Header: at.header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Close: l.options.NoConnectionReuse}
	if req.Host == "" {
		req.Host = at.to.url.Host
	}
	stored := o.request.jar.Cookies(at.to.url)
	if len(o.hops) == 0 {
		o.cookies = stored
	}
	if len(stored) > 0 || len(o.request.cookies) > 0 {
		req.Header = req.Header.Clone()
		addCookies(req, o.request.cookies, stored)
	}
	if at.body != nil {
		req.Body = at.body.reader()
		req.GetBody = func() (io.ReadCloser, error) { return at.body.reader(), nil }
		req.ContentLength = int64(len(at.body.wire))
	}
	l.debugRequest(req)
	return req
}

// addCookies adds the cookies of a request, and those of the jar that they do
// not replace.
func addCookies(req *http.Request, own []cookieParam, stored []*http.Cookie) {
	for _, c := range own {
		req.AddCookie(&http.Cookie{Name: c.name, Value: c.value})
	}
	for _, c := range stored {
		replaced := false
		for _, o := range own {
			replaced = replaced || o.replace && o.name == c.Name
		}
		if !replaced {
			req.AddCookie(c)
		}
	}
}

// trustedLength is up to which size a server is believed about its body.
const trustedLength = 1 << 20

// readContent reads a body to its end and undoes its encoding.
func readContent(res *http.Response, responseType string) ([]byte, error) {
	if responseType == typeNone {
		_, err := io.Copy(io.Discard, res.Body)
		return nil, err
	}
	content, err := readAll(res.Body, res.ContentLength)
	if err != nil {
		return nil, err
	}
	if encoding := res.Header.Get("Content-Encoding"); encoding != "" && len(content) > 0 {
		return decompress(content, encoding)
	}
	return content, nil
}

func readAll(r io.Reader, length int64) ([]byte, error) {
	if length < 0 || length > trustedLength {
		return io.ReadAll(r)
	}
	// One byte more, so that the end is seen: only then is the connection free.
	content := make([]byte, length, length+1)
	n, err := io.ReadFull(r, content)
	if err != nil && !(n == 0 && errors.Is(err, io.EOF)) {
		return nil, err
	}
	if n < len(content) { // the answer to HEAD tells a length and has no body
		return content[:n], nil
	}
	if m, err := r.Read(content[n : n+1]); m > 0 || err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read body: more than the promised %d bytes: %w", length, err)
	}
	return content, nil
}

// maxDrained is how much of a body that nobody wants is read in order to keep
// its connection.
const maxDrained = 64 << 10
