package k6secrets

import (
	"fmt"

	"github.com/grafana/sobek"

	"github.com/metachaos/metachaos/load/script"
)

// Module returns the module "k6/secrets" over the sources.
func (s *Sources) Module() script.Module { return module{s} }

type module struct{ sources *Sources }

var _ script.Module = module{}

// Exports makes the exports for one VU.
func (m module) Exports(h script.Host) script.Exports {
	return script.Exports{Named: map[string]any{
		"get": m.getter(h, ""),
		"source": func(call sobek.FunctionCall) sobek.Value {
			name, err := m.sources.source(call.Argument(0).String())
			if err != nil {
				panic(h.Runtime().NewGoError(fmt.Errorf("secrets.source: %w", err)))
			}
			o := h.Runtime().NewObject()
			// setting a plain property of a fresh object cannot fail
			_ = o.Set("get", m.getter(h, name))
			return o
		},
	}}
}

// getter returns the function get(key) of a source, whose result is a promise.
func (m module) getter(h script.Host, source string) func(sobek.FunctionCall) sobek.Value {
	return func(call sobek.FunctionCall) sobek.Value {
		rt := h.Runtime()
		promise, resolve, reject := rt.NewPromise()
		value, err := m.sources.get(source, call.Argument(0).String())
		if err != nil {
			err = reject(rt.NewGoError(fmt.Errorf("secrets.get: %w", err)))
		} else {
			err = resolve(value)
		}
		if err != nil {
			panic(err)
		}
		return rt.ToValue(promise)
	}
}
