package k6http

import (
	"context"
	"net/netip"
	"strconv"
	"time"

	"github.com/metachaos/metachaos/load/script"
	"github.com/metachaos/metachaos/results"
)

// metrics are those that k6 defines for HTTP.
type metrics struct {
	requests, failed, duration, blocked, connecting, tls, sending, waiting, receiving, sent, received *results.Metric
}

func metricsOf(h script.ProtocolHost) metrics {
	return metrics{requests: h.Builtin("http_reqs"), failed: h.Builtin("http_req_failed"), duration: h.Builtin("http_req_duration"),
		blocked: h.Builtin("http_req_blocked"), connecting: h.Builtin("http_req_connecting"), tls: h.Builtin("http_req_tls_handshaking"),
		sending: h.Builtin("http_req_sending"), waiting: h.Builtin("http_req_waiting"), receiving: h.Builtin("http_req_receiving"),
		sent: h.Builtin("data_sent"), received: h.Builtin("data_received")}
}

// report records the samples of a request and logs its failure. Of an
// iteration that was cut, nothing is recorded, and nothing more is run.
func (c *client) report(ctx context.Context, o *outcome) {
	if ctx.Err() != nil {
		// The engine does so too, but maybe only after the script went on.
		c.rt.Interrupt(context.Cause(ctx))
		return
	}
	for i := range o.hops {
		c.record(o.request, &o.hops[i])
	}
	if o.err != nil {
		c.warn(o.err)
	}
}

func (c *client) record(r *request, h *hop) {
	m, t := &c.metrics, &h.took
	values := [...]script.Measured{
		{Metric: m.requests, Value: 1}, {Metric: m.duration, Value: milli(t.duration())}, {Metric: m.blocked, Value: milli(t.blocked)},
		{Metric: m.connecting, Value: milli(t.connecting)}, {Metric: m.tls, Value: milli(t.tlsHandshaking)},
		{Metric: m.sending, Value: milli(t.sending)}, {Metric: m.waiting, Value: milli(t.waiting)}, {Metric: m.receiving, Value: milli(t.receiving)},
		{Metric: m.failed},
	}
	n := len(values)
	switch h.judged {
	case notJudged:
		n-- // nothing to say about failure
	case unexpected:
		values[n-1].Value = 1
	}
	c.host.SampleTogether(time.Since(h.done), c.tagsOf(r, h), values[:n]...)
}

func milli(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// tagKey is all that the tags of a hop depend on. Equal keys have equal tags,
// so that most hops find theirs made.
type tagKey struct {
	vu           *results.Tags
	own, name    string
	method, url  string
	proto, tls   string
	ocsp, text   string
	remote       netip.Addr
	status, code int
	judged       verdict
}

func (c *client) tagsOf(r *request, h *hop) *results.Tags {
	k := tagKey{vu: r.vuTags, own: r.tags, name: r.name, method: h.method, url: h.to.clean, proto: h.proto, text: h.text,
		remote: h.remote.Addr(), status: h.status, code: h.code, judged: h.judged}
	if h.tls != nil {
		k.tls, k.ocsp = h.tls.version, h.tls.ocsp.status
	}
	if t, ok := c.tagSets.get(k); ok {
		return t
	}
	t := c.makeTags(k)
	c.tagSets.put(k, t)
	return t
}

func (c *client) makeTags(k tagKey) *results.Tags {
	all := map[string]string{}
	// A name that was given, by any means, also stands for the URL, which may
	// be different each time.
	name := k.name
	if given, ok := k.vu.Get("name"); ok {
		name = given
	}
	decodeTags(k.own, func(tag, value string) {
		if tag == "name" {
			name = value
		}
	})
	if name == "" {
		name = k.url
	}
	system := map[string]string{"name": name, "url": name, "method": k.method, "status": strconv.Itoa(k.status), "proto": k.proto,
		"tls_version": k.tls, "ocsp_status": k.ocsp, "error": k.text}
	if k.code != 0 {
		system["error_code"] = strconv.Itoa(k.code)
	}
	if k.remote.IsValid() {
		system["ip"] = k.remote.String()
	}
	if k.judged != notJudged {
		system["expected_response"] = strconv.FormatBool(k.judged == asExpected)
	}
	for tag, value := range system {
		if value != "" && c.host.Tagged(tag) {
			all[tag] = value
		}
	}
	decodeTags(k.own, func(tag, value string) { all[tag] = value })
	return k.vu.WithAll(all)
}
