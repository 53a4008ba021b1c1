package k6http

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/grafana/sobek"

	"github.com/metachaos/metachaos/load/modules/wire"
)

// asyncRequest is http.asyncRequest(method, url, body, params). What fails on
// the way resolves the promise like an answer, unless the options say throw.
func (c *client) asyncRequest(call sobek.FunctionCall) sobek.Value {
	l := c.ready()
	promise, resolve, reject := c.rt.NewPromise()
	r, err := c.read(call.Argument(0).String(), call.Argument(1), call.Argument(2), call.Argument(3))
	if err != nil {
		if r.throw {
			return settled(c.rt.ToValue(promise), reject(c.rt.NewGoError(err)))
		}
		return settled(c.rt.ToValue(promise), resolve(c.response(c.refusal(r, err))))
	}
	ctx := c.host.Context()
	l.closeWith(ctx)
	callback := c.host.RegisterCallback()
	go func() {
		o := l.perform(ctx, r)
		callback(func() error {
			c.report(ctx, o)
			if o.err != nil && r.throw {
				return reject(c.rt.NewGoError(o.err))
			}
			return resolve(c.response(o))
		})
	}()
	return c.rt.ToValue(promise)
}

// settled returns a promise that was settled without fail: only an
// interrupted runtime cannot settle one.
func settled(promise sobek.Value, err error) sobek.Value {
	if err != nil {
		panic(err)
	}
	return promise
}

// batch is http.batch, of an array or an object of requests.
func (c *client) batch(call sobek.FunctionCall) sobek.Value {
	l := c.ready()
	set, ok := call.Argument(0).(*sobek.Object)
	if !ok {
		c.throw("http.batch: want an array or an object of requests, got %s", call.Argument(0))
	}
	keys := set.Keys()
	outcomes := make([]*outcome, len(keys))
	requests := make([]*request, len(keys))
	for i, key := range keys {
		r, err := c.readBatched(set.Get(key))
		if err != nil {
			if r.throw {
				c.throw("http.batch: request %s: %w", key, err)
			}
			outcomes[i] = c.refusal(r, err)
			continue
		}
		requests[i] = r
	}
	ctx := c.host.Context()
	l.closeWith(ctx)
	l.performAll(ctx, requests, outcomes)
	for i, r := range requests {
		if r != nil {
			c.report(ctx, outcomes[i])
		}
	}
	for i, o := range outcomes {
		if o.err != nil && o.request.throw {
			c.throw("http.batch: request %s: %w", keys[i], o.err)
		}
	}
	if set.ClassName() == "Array" {
		responses := make([]any, len(outcomes))
		for i, o := range outcomes {
			responses[i] = c.response(o)
		}
		return c.rt.NewArray(responses...)
	}
	responses := c.rt.NewObject()
	for i, o := range outcomes {
		// setting a plain property of a fresh object cannot fail
		_ = responses.Set(keys[i], c.response(o))
	}
	return responses
}

// readBatched reads one request of a batch: an address, [method, url, body,
// params], or {method, url, body, params}.
func (c *client) readBatched(v sobek.Value) (*request, error) {
	o, ok := v.(*sobek.Object)
	if _, isTemplate := recordOf[*template](v); !ok || isTemplate {
		return c.read(http.MethodGet, v, nil, nil)
	}
	names := [...]string{"method", "url", "body", "params"}
	if o.ClassName() == "Array" {
		names = [...]string{"0", "1", "2", "3"}
	}
	var part [len(names)]sobek.Value
	for i, name := range names {
		if part[i] = o.Get(name); part[i] == nil {
			part[i] = sobek.Undefined()
		}
	}
	method := http.MethodGet
	if !wire.Absent(part[0]) {
		method = part[0].String()
	}
	if wire.Absent(part[1]) {
		return &request{params: c.defaults()}, fmt.Errorf("want an address, [method, url, body, params] or {method, url, body, params}, got %s", v)
	}
	return c.read(method, part[1], part[2], part[3])
}

// performAll does requests at once, as many in all and for one host as the
// options allow. Nil requests are left out.
func (l *line) performAll(ctx context.Context, requests []*request, outcomes []*outcome) {
	slots, hosts := newSlots(l.options.Batch), map[string]slots{}
	var all sync.WaitGroup
	for i, r := range requests {
		if r == nil {
			continue
		}
		host := r.to.url.Host
		if _, ok := hosts[host]; !ok {
			hosts[host] = newSlots(l.options.BatchPerHost)
		}
		ofHost := hosts[host]
		all.Go(func() {
			ofHost.take()
			defer ofHost.free()
			slots.take()
			defer slots.free()
			outcomes[i] = l.perform(ctx, r)
		})
	}
	all.Wait()
}

// slots bound how many do something at once; nil does not.
type slots chan struct{}

func newSlots(n int) slots {
	if n <= 0 {
		return nil
	}
	return make(slots, n)
}

func (s slots) take() {
	if s != nil {
		s <- struct{}{}
	}
}

func (s slots) free() {
	if s != nil {
		<-s
	}
}
