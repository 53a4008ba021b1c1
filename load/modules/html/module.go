package k6html

import (
	"fmt"
	"strings"

	"github.com/PuerkitoBio/goquery"
	"github.com/grafana/sobek"
	"golang.org/x/net/html"

	"github.com/metachaos/metachaos/load/modules/wire"
	"github.com/metachaos/metachaos/load/script"
)

// ImportPath is the name that scripts import.
const ImportPath = "k6/html"

// New returns the module "k6/html".
func New() script.Module { return module{} }

type module struct{}

var _ script.Module = module{}

// Exports makes the exports for one VU.
func (module) Exports(h script.Host) script.Exports {
	host := h.(script.ProtocolHost) // as the engine promises
	parse := func(call sobek.FunctionCall) sobek.Value {
		selection, err := Parse(host, call.Argument(0).String(), "")
		if err != nil {
			wire.Throw(host, "parseHTML: %w", err)
		}
		return selection
	}
	return script.Exports{Named: map[string]any{"parseHTML": parse}}
}

// Parse reads a document and returns a selection of all of it. Links in it are
// relative to the address, which may be empty.
func Parse(h script.ProtocolHost, text, address string) (*sobek.Object, error) {
	root, err := html.Parse(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("parse HTML: %w", err)
	}
	k := kitOf(h)
	return k.selection(goquery.NewDocumentFromNode(root).Selection, address), nil
}

// kit makes the objects of one runtime.
type kit struct {
	host script.ProtocolHost
	rt   *sobek.Runtime
	// The prototypes: the same methods, and where a selection and an element
	// have different ones of a name, those of either.
	selections, elements *sobek.Object
}

type kitKey struct{}

func kitOf(h script.ProtocolHost) *kit {
	return h.Share(kitKey{}, func() any {
		k := &kit{host: h, rt: h.Runtime()}
		k.selections = k.prototype(k.elementMethods(), k.selectionMethods())
		k.elements = k.prototype(k.selectionMethods(), k.elementMethods())
		return k
	}).(*kit)
}

// method is a method of a selection or, with its first node, of an element.
type method func(n *nodes, call sobek.FunctionCall) sobek.Value

// prototype makes an object of methods; the later ones win.
func (k *kit) prototype(tables ...map[string]method) *sobek.Object {
	o := k.rt.NewObject()
	for _, table := range tables {
		for name, m := range table {
			// setting a plain property of a fresh object cannot fail
			_ = o.Set(name, func(call sobek.FunctionCall) sobek.Value {
				n, ok := nodesOf(call.This)
				if !ok {
					wire.Throw(k.host, "%s: want to be called on a selection or an element, got %s", name, call.This)
				}
				return m(n, call)
			})
		}
	}
	return o
}

// nodes is what is behind a selection or an element, which is a selection of
// one node. It has no properties of its own.
type nodes struct {
	sel     *goquery.Selection
	address string // that links are relative to
}

var _ sobek.DynamicObject = (*nodes)(nil)

func (*nodes) Get(string) sobek.Value       { return nil }
func (*nodes) Set(string, sobek.Value) bool { return false }
func (*nodes) Has(string) bool              { return false }
func (*nodes) Delete(string) bool           { return true }
func (*nodes) Keys() []string               { return nil }

func nodesOf(v sobek.Value) (*nodes, bool) {
	o, ok := v.(*sobek.Object)
	if !ok {
		return nil, false
	}
	n, ok := o.Export().(*nodes)
	return n, ok
}

func (k *kit) wrap(prototype *sobek.Object, sel *goquery.Selection, address string) *sobek.Object {
	o := k.rt.NewDynamicObject(&nodes{sel, address})
	// an extensible object takes any prototype
	_ = o.SetPrototype(prototype)
	return o
}

func (k *kit) selection(sel *goquery.Selection, address string) *sobek.Object {
	return k.wrap(k.selections, sel, address)
}

// element returns the element of a node, or null without one.
func (k *kit) element(n *html.Node, address string) sobek.Value {
	if n == nil {
		return sobek.Null()
	}
	return k.wrap(k.elements, goquery.NewDocumentFromNode(n).Selection, address)
}

// list returns an array of elements.
func (k *kit) list(all []*html.Node, address string) sobek.Value {
	items := make([]any, len(all))
	for i, n := range all {
		items[i] = k.element(n, address)
	}
	return k.rt.NewArray(items...)
}

// text returns text, or undefined if there is none.
func (k *kit) text(s string, ok bool) sobek.Value {
	if !ok {
		return sobek.Undefined()
	}
	return k.rt.ToValue(s)
}

// Selected returns what is behind an object that [Parse] or [Find] made.
func Selected(o *sobek.Object) *goquery.Selection { return o.Export().(*nodes).sel }

// Find returns the elements of a selection that a selector matches.
func Find(h script.ProtocolHost, o *sobek.Object, selector string) *sobek.Object {
	n := o.Export().(*nodes)
	return kitOf(h).selection(n.sel.Find(selector), n.address)
}
