package k6html

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/grafana/sobek"

	"github.com/metachaos/metachaos/load/modules/wire"
)

const dataPrefix = "data-"

// data returns a data-* attribute of the first element, in the type that its
// text has, or what the script gives for the lack of it; without a key, all of
// them by name.
func (k *kit) data(n *nodes, call sobek.FunctionCall) sobek.Value {
	if n.sel.Length() == 0 {
		return call.Argument(1)
	}
	if key := call.Argument(0); !wire.Absent(key) {
		text, ok := lookUp(n.sel.Get(0), dataPrefix+kebab(key.String()))
		if !ok {
			return call.Argument(1)
		}
		return k.typed(text)
	}
	o := k.rt.NewObject()
	for _, a := range n.sel.Get(0).Attr {
		if name, ok := strings.CutPrefix(a.Key, dataPrefix); ok {
			_ = o.Set(camel(name), k.typed(a.Val)) // a plain property of a fresh object
		}
	}
	return o
}

// typed reads booleans, null, objects, arrays, and numbers that would be
// written in the same way.
func (k *kit) typed(text string) sobek.Value {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return k.rt.ToValue(text)
	}
	switch v.(type) {
	case nil:
		return sobek.Null()
	case string:
		return k.rt.ToValue(text)
	case float64:
		if number := k.rt.ToValue(v); number.String() == text {
			return number
		}
		return k.rt.ToValue(text)
	}
	return k.rt.ToValue(v)
}

// camel turns last-name into lastName, and kebab does the reverse.
func camel(name string) string {
	return regexp.MustCompile(`-([a-z])`).ReplaceAllStringFunc(name, func(s string) string { return strings.ToUpper(s[1:]) })
}

func kebab(name string) string {
	return regexp.MustCompile(`[A-Z]`).ReplaceAllStringFunc(name, func(s string) string { return "-" + strings.ToLower(s) })
}
