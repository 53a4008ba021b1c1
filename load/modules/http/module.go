package k6http

import (
	"net/http"
	"sync"

	"github.com/grafana/sobek"

	"github.com/metachaos/metachaos/load/modules/wire"
	"github.com/metachaos/metachaos/load/script"
	"github.com/metachaos/metachaos/results"
)

// ImportPath is the name that scripts import.
const ImportPath = "k6/http"

// DefaultUserAgent is sent with requests unless the options or the script say
// otherwise.
const DefaultUserAgent = "metachaos/1.0 (load test)"

// New returns the module "k6/http". It serves one run.
func New() script.Module { return &module{} }

// module is what the VUs of a run share.
type module struct {
	once   sync.Once
	common *common
	err    error
}

var _ script.Module = (*module)(nil)

// Exports makes the exports for one VU.
func (m *module) Exports(h script.Host) script.Exports {
	host := h.(script.ProtocolHost) // as the engine promises
	c := &client{module: m, host: host, rt: host.Runtime(), expected: successful(),
		addresses: newMemo[string, *address](maxAddresses), tagSets: newMemo[tagKey, *results.Tags](maxTagSets)}
	c.metrics = metricsOf(host)
	c.jars = c.jarClass()
	host.BeforeIteration(c.startIteration)
	host.AfterRun(c.recordTraffic)
	wire.ShareJar(host, func() http.CookieJar { return c.currentJar() })
	named := map[string]any{
		"get":   native(func(call sobek.FunctionCall) sobek.Value { return c.call(http.MethodGet, call, withoutBody) }),
		"head":  native(func(call sobek.FunctionCall) sobek.Value { return c.call(http.MethodHead, call, withoutBody) }),
		"post":  native(func(call sobek.FunctionCall) sobek.Value { return c.call(http.MethodPost, call, withBody) }),
		"put":   native(func(call sobek.FunctionCall) sobek.Value { return c.call(http.MethodPut, call, withBody) }),
		"patch": native(func(call sobek.FunctionCall) sobek.Value { return c.call(http.MethodPatch, call, withBody) }),
		"del":   native(func(call sobek.FunctionCall) sobek.Value { return c.call(http.MethodDelete, call, withBody) }),
		"options": native(func(call sobek.FunctionCall) sobek.Value {
			return c.call(http.MethodOptions, call, withBody)
		}),
		"request": native(c.request), "asyncRequest": native(c.asyncRequest), "batch": native(c.batch),
		"url": native(c.templateURL), "file": native(c.file),
		"cookieJar": native(c.cookieJar), "CookieJar": c.jars,
		"expectedStatuses": native(c.expectedStatuses), "setResponseCallback": native(c.setResponseCallback),
	}
	for name, value := range constants() {
		named[name] = value
	}
	return script.Exports{Named: named, Default: c.rt.NewDynamicObject(&exports{rt: c.rt, named: named, made: map[string]sobek.Value{}})}
}

// exports is the default export. Its functions are made when they are used:
// objects for all of them would be a large part of what a VU costs.
type exports struct {
	rt    *sobek.Runtime
	named map[string]any
	made  map[string]sobek.Value // also what the script has put there
}

var _ sobek.DynamicObject = (*exports)(nil)

// Get returns an export, or nil.
func (e *exports) Get(name string) sobek.Value {
	if v, ok := e.made[name]; ok {
		return v
	}
	export, ok := e.named[name]
	if !ok {
		return nil
	}
	v := e.rt.ToValue(export)
	e.made[name] = v
	return v
}

// Set replaces or adds an export, for this VU.
func (e *exports) Set(name string, v sobek.Value) bool {
	e.made[name] = v
	return true
}

// Has reports whether there is an export.
func (e *exports) Has(name string) bool { return e.Get(name) != nil }

// Delete keeps what the module exports.
func (e *exports) Delete(name string) bool {
	delete(e.made, name)
	return e.named[name] == nil
}

// Keys lists the exports.
func (e *exports) Keys() []string {
	names := sortedKeys(e.named)
	for _, name := range sortedKeys(e.made) {
		if _, own := e.named[name]; !own {
			names = append(names, name)
		}
	}
	return names
}

// native is the type of functions that sobek calls without reflection.
type native = func(sobek.FunctionCall) sobek.Value

// client is the module in one VU. It is used on the VU's goroutine, but for
// what perform needs.
type client struct {
	module   *module
	host     script.ProtocolHost
	rt       *sobek.Runtime
	metrics  metrics
	expected *statuses // of setResponseCallback; nil judges nothing

	responses *sobek.Object // the prototype of responses; nil until used
	jars      *sobek.Object // the class CookieJar

	// line is what requests go through; nil until the first.
	line *line
	jar  *jar // of the iteration; nil until used

	parseJSON sobek.Callable // JSON.parse; nil until used

	addresses memo[string, *address]
	tagSets   memo[tagKey, *results.Tags]
}

// ready refuses requests in init code and connects the VU to the options.
func (c *client) ready() *line {
	if c.line != nil {
		return c.line
	}
	if c.host.InInit() {
		c.throw("HTTP requests cannot be made in init code: make them in the default function, setup or teardown")
	}
	common, err := c.common()
	if err != nil {
		c.throw("%w", err)
	}
	c.line = newLine(common, c.host.VU(), c.host.Logger())
	return c.line
}

// common returns what the VUs of the run share, which the first to ask makes.
func (c *client) common() (*common, error) {
	m := c.module
	m.once.Do(func() { m.common, m.err = newCommon(c.host.Options()) })
	return m.common, m.err
}

// startIteration forgets cookies and, if asked to, connections.
func (c *client) startIteration() {
	if c.jar != nil {
		if common, err := c.common(); err != nil || !common.options.NoCookiesReset {
			c.jar = nil
		}
	}
	if c.line != nil && c.line.options.NoVUConnectionReuse {
		c.line.closeIdle()
	}
}

// recordTraffic counts the bytes since the last time. They belong to the
// connections of the VU and not to a request, and have the tags of the VU.
func (c *client) recordTraffic() {
	if c.line == nil {
		return
	}
	sent, received := c.line.traffic.take()
	if sent == 0 && received == 0 {
		return
	}
	c.host.SampleTogether(0, c.host.Tags(),
		script.Measured{Metric: c.metrics.sent, Value: float64(sent)},
		script.Measured{Metric: c.metrics.received, Value: float64(received)})
}

func (c *client) throw(format string, args ...any) { wire.Throw(c.host, format, args...) }

// How much a VU remembers of addresses and tag sets. Beyond, they do not
// repeat, and remembering is of no use.
const (
	maxAddresses = 64
	maxTagSets   = 128
)

// memo remembers the values of keys, and forgets them all when it is full.
type memo[K comparable, V any] struct {
	limit  int
	values map[K]V
}

func newMemo[K comparable, V any](limit int) memo[K, V] {
	return memo[K, V]{limit: limit, values: map[K]V{}}
}

func (m *memo[K, V]) get(key K) (V, bool) {
	v, ok := m.values[key]
	return v, ok
}

func (m *memo[K, V]) put(key K, value V) {
	if len(m.values) >= m.limit {
		clear(m.values)
	}
	m.values[key] = value
}
