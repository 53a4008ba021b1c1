package k6html

import (
	"strings"

	"github.com/PuerkitoBio/goquery"
	"github.com/grafana/sobek"
	"golang.org/x/net/html"

	"github.com/metachaos/metachaos/load/modules/wire"
)

// selectionMethods are those of jQuery that read.
func (k *kit) selectionMethods() map[string]method {
	all := k.traversals()
	for name, m := range map[string]method{
		"attr": k.attr, "data": k.data, "hasClass": k.hasClass, "html": k.html, "text": k.textOf, "val": k.val, "index": k.index,
		"each": k.each, "map": k.mapTo, "get": k.get, "toArray": k.toArray, "is": k.is,
		"filter": k.filter, "not": k.not, "has": k.has, "closest": k.closest, "slice": k.slice, "eq": k.eq,
		"serialize": k.serialize, "serializeArray": k.serializeArray, "serializeObject": k.serializeObject,
		"size": func(n *nodes, _ sobek.FunctionCall) sobek.Value { return k.rt.ToValue(n.sel.Length()) },
	} {
		all[name] = m
	}
	return all
}

// traversals are methods that lead to another selection, by an optional
// selector.
func (k *kit) traversals() map[string]method {
	type s = *goquery.Selection
	plain := func(all func(s) s) method {
		return func(n *nodes, _ sobek.FunctionCall) sobek.Value { return k.selection(all(n.sel), n.address) }
	}
	selected := func(all func(s) s, filtered func(s, string) s) method {
		return func(n *nodes, call sobek.FunctionCall) sobek.Value {
			if v := call.Argument(0); !wire.Absent(v) {
				return k.selection(filtered(n.sel, v.String()), n.address)
			}
			return k.selection(all(n.sel), n.address)
		}
	}
	until := func(all func(s) s, bySelector func(s, string) s, bySelection func(s, s) s) method {
		return func(n *nodes, call sobek.FunctionCall) sobek.Value {
			var found s
			if other, ok := nodesOf(call.Argument(0)); ok {
				found = bySelection(n.sel, other.sel)
			} else if v := call.Argument(0); !wire.Absent(v) {
				found = bySelector(n.sel, v.String())
			} else {
				found = all(n.sel)
			}
			if v := call.Argument(1); !wire.Absent(v) {
				found = found.Filter(v.String())
			}
			return k.selection(found, n.address)
		}
	}
	return map[string]method{
		"find": func(n *nodes, call sobek.FunctionCall) sobek.Value {
			if other, ok := nodesOf(call.Argument(0)); ok {
				return k.selection(n.sel.FindSelection(other.sel), n.address)
			}
			return k.selection(n.sel.Find(call.Argument(0).String()), n.address)
		},
		"first": plain(s.First), "last": plain(s.Last), "contents": plain(s.Contents),
		"children": selected(s.Children, s.ChildrenFiltered), "siblings": selected(s.Siblings, s.SiblingsFiltered),
		"parent": selected(s.Parent, s.ParentFiltered), "parents": selected(s.Parents, s.ParentsFiltered),
		"next": selected(s.Next, s.NextFiltered), "nextAll": selected(s.NextAll, s.NextAllFiltered),
		"prev": selected(s.Prev, s.PrevFiltered), "prevAll": selected(s.PrevAll, s.PrevAllFiltered),
		"nextUntil":    until(s.NextAll, s.NextUntil, s.NextUntilSelection),
		"prevUntil":    until(s.PrevAll, s.PrevUntil, s.PrevUntilSelection),
		"parentsUntil": until(s.Parents, s.ParentsUntil, s.ParentsUntilSelection),
	}
}

// attr returns an attribute of the first element, or what the script gives for
// the lack of it.
func (k *kit) attr(n *nodes, call sobek.FunctionCall) sobek.Value {
	if value, ok := n.sel.Attr(call.Argument(0).String()); ok {
		return k.rt.ToValue(value)
	}
	return call.Argument(1)
}

func (k *kit) hasClass(n *nodes, call sobek.FunctionCall) sobek.Value {
	return k.rt.ToValue(n.sel.HasClass(call.Argument(0).String()))
}

func (k *kit) textOf(n *nodes, _ sobek.FunctionCall) sobek.Value { return k.rt.ToValue(n.sel.Text()) }

// html returns what is inside of the first element, or what the script gives
// for the lack of one.
func (k *kit) html(n *nodes, call sobek.FunctionCall) sobek.Value {
	if n.sel.Length() == 0 {
		return call.Argument(0)
	}
	return k.rt.ToValue(innerHTML(n.sel.Get(0)))
}

func (k *kit) val(n *nodes, call sobek.FunctionCall) sobek.Value {
	if n.sel.Length() == 0 {
		return call.Argument(0)
	}
	values, many := valuesOf(n.sel.Get(0))
	switch {
	case many:
		return k.rt.NewArray(anys(values)...)
	case len(values) == 0:
		return call.Argument(0)
	}
	return k.rt.ToValue(values[0])
}

// index tells the place of the first element among its siblings, among those
// that a selector matches, or of another element in the selection.
func (k *kit) index(n *nodes, call sobek.FunctionCall) sobek.Value {
	if other, ok := nodesOf(call.Argument(0)); ok {
		return k.rt.ToValue(n.sel.IndexOfSelection(other.sel))
	}
	if v := call.Argument(0); !wire.Absent(v) {
		return k.rt.ToValue(n.sel.IndexSelector(v.String()))
	}
	return k.rt.ToValue(n.sel.Index())
}

func (k *kit) function(name string, v sobek.Value) sobek.Callable {
	f, ok := sobek.AssertFunction(v)
	if !ok {
		wire.Throw(k.host, "%s: want a function, got %s", name, v)
	}
	return f
}

// visit calls a function of the script; what it throws goes on its way.
func (k *kit) visit(f sobek.Callable, i int, item sobek.Value) sobek.Value {
	v, err := f(item, k.rt.ToValue(i), item)
	if err != nil {
		panic(err)
	}
	return v
}

// each calls f(index, element) until it returns false.
func (k *kit) each(n *nodes, call sobek.FunctionCall) sobek.Value {
	f := k.function("each", call.Argument(0))
	for i, node := range n.sel.Nodes {
		if v := k.visit(f, i, k.element(node, n.address)); v.StrictEquals(k.rt.ToValue(false)) {
			break
		}
	}
	return call.This
}

// mapTo returns what f(index, selection) returns, as an array.
func (k *kit) mapTo(n *nodes, call sobek.FunctionCall) sobek.Value {
	f := k.function("map", call.Argument(0))
	var all []any
	n.sel.Each(func(i int, one *goquery.Selection) {
		all = append(all, k.visit(f, i, k.selection(one, n.address)))
	})
	return k.rt.NewArray(all...)
}

// get returns the element at an index, from the end if it is negative, or
// undefined; without an index, all of them.
func (k *kit) get(n *nodes, call sobek.FunctionCall) sobek.Value {
	if wire.Absent(call.Argument(0)) {
		return k.list(n.sel.Nodes, n.address)
	}
	i := int(call.Argument(0).ToInteger())
	if i < 0 {
		i += n.sel.Length()
	}
	if i < 0 || i >= n.sel.Length() {
		return sobek.Undefined()
	}
	return k.element(n.sel.Get(i), n.address)
}

func (k *kit) toArray(n *nodes, _ sobek.FunctionCall) sobek.Value {
	all := make([]any, n.sel.Length())
	n.sel.Each(func(i int, one *goquery.Selection) { all[i] = k.selection(one, n.address) })
	return k.rt.NewArray(all...)
}

func (k *kit) eq(n *nodes, call sobek.FunctionCall) sobek.Value {
	return k.selection(n.sel.Eq(int(call.Argument(0).ToInteger())), n.address)
}

func (k *kit) slice(n *nodes, call sobek.FunctionCall) sobek.Value {
	size := n.sel.Length()
	bound := func(v sobek.Value, absent int) int {
		if wire.Absent(v) {
			return absent
		}
		i := int(v.ToInteger())
		if i < 0 {
			i += size
		}
		return max(0, min(i, size))
	}
	from, to := bound(call.Argument(0), 0), bound(call.Argument(1), size)
	return k.selection(n.sel.Slice(from, max(from, to)), n.address)
}

// matching returns the elements of a selection that a selector, another
// selection or a function picks.
func (k *kit) matching(name string, n *nodes, v sobek.Value) *goquery.Selection {
	if other, ok := nodesOf(v); ok {
		return n.sel.FilterSelection(other.sel)
	}
	if f, ok := sobek.AssertFunction(v); ok {
		return n.sel.FilterFunction(func(i int, one *goquery.Selection) bool {
			return k.visit(f, i, k.selection(one, n.address)).ToBoolean()
		})
	}
	if wire.Absent(v) {
		wire.Throw(k.host, "%s: want a selector, a selection or a function, got %s", name, v)
	}
	return n.sel.Filter(v.String())
}

func (k *kit) is(n *nodes, call sobek.FunctionCall) sobek.Value {
	return k.rt.ToValue(k.matching("is", n, call.Argument(0)).Length() > 0)
}

func (k *kit) filter(n *nodes, call sobek.FunctionCall) sobek.Value {
	return k.selection(k.matching("filter", n, call.Argument(0)), n.address)
}

func (k *kit) not(n *nodes, call sobek.FunctionCall) sobek.Value {
	return k.selection(n.sel.NotSelection(k.matching("not", n, call.Argument(0))), n.address)
}

func (k *kit) has(n *nodes, call sobek.FunctionCall) sobek.Value {
	if other, ok := nodesOf(call.Argument(0)); ok {
		return k.selection(n.sel.HasSelection(other.sel), n.address)
	}
	return k.selection(n.sel.Has(call.Argument(0).String()), n.address)
}

func (k *kit) closest(n *nodes, call sobek.FunctionCall) sobek.Value {
	if other, ok := nodesOf(call.Argument(0)); ok {
		return k.selection(n.sel.ClosestSelection(other.sel), n.address)
	}
	return k.selection(n.sel.Closest(call.Argument(0).String()), n.address)
}

func innerHTML(n *html.Node) string {
	var b strings.Builder
	for child := n.FirstChild; child != nil; child = child.NextSibling {
		_ = html.Render(&b, child) // a builder takes everything
	}
	return b.String()
}

func anys[T any](items []T) []any {
	all := make([]any, len(items))
	for i, item := range items {
		all[i] = item
	}
	return all
}
