package k6html

import (
	"maps"
	"strings"

	"github.com/PuerkitoBio/goquery"
	"github.com/grafana/sobek"
	"golang.org/x/net/html"
)

// elementMethods are those of the DOM that read, as functions.
func (k *kit) elementMethods() map[string]method {
	all := k.nodeMethods()
	maps.Copy(all, k.comparisons())
	maps.Copy(all, k.propertyMethods())
	return all
}

// comparisons are methods that take another element.
func (k *kit) comparisons() map[string]method {
	return map[string]method{
		"contains":    k.comparing(contains),
		"isSameNode":  k.comparing(func(a, b *html.Node) bool { return a == b }),
		"isEqualNode": k.comparing(func(a, b *html.Node) bool { return outerHTML(a) == outerHTML(b) }),
	}
}

// nodeMethods are what every element has. They look at the first node.
func (k *kit) nodeMethods() map[string]method {
	text := func(of func(*html.Node) string) method {
		return k.reading(func(n *html.Node, _ *nodes, _ sobek.FunctionCall) any { return of(n) })
	}
	node := func(of func(*html.Node) *html.Node) method {
		return k.reading(func(n *html.Node, at *nodes, _ sobek.FunctionCall) any { return k.element(of(n), at.address) })
	}
	list := func(of func(*html.Node, string) []*html.Node) method {
		return k.reading(func(n *html.Node, at *nodes, call sobek.FunctionCall) any {
			return k.list(of(n, call.Argument(0).String()), at.address)
		})
	}
	judging := func(of func(*html.Node, string) bool) method {
		return k.reading(func(n *html.Node, _ *nodes, call sobek.FunctionCall) any { return of(n, call.Argument(0).String()) })
	}
	return map[string]method{
		"nodeName": text(nodeName), "innerHTML": text(innerHTML), "textContent": text(textContent), "toString": text(outerHTML),
		"nodeType":  k.reading(func(n *html.Node, _ *nodes, _ sobek.FunctionCall) any { return nodeType(n) }),
		"nodeValue": k.reading(func(n *html.Node, _ *nodes, _ sobek.FunctionCall) any { return nodeValue(n) }),
		"id":        text(func(n *html.Node) string { return attribute(n, "id") }),
		"className": text(func(n *html.Node) string { return attribute(n, "class") }),
		"classList": k.reading(func(n *html.Node, _ *nodes, _ sobek.FunctionCall) any {
			return k.rt.NewArray(anys(strings.Fields(attribute(n, "class")))...)
		}),
		"lang": text(lang), "namespaceURI": text(namespace),
		"isDefaultNamespace": judging(func(n *html.Node, uri string) bool { return namespace(n) == uri || uri == "" && n.Namespace == "" }),
		"attributes":         k.reading(k.attributes),
		"getAttribute": k.reading(func(n *html.Node, _ *nodes, call sobek.FunctionCall) any {
			value, ok := lookUp(n, call.Argument(0).String())
			return k.text(value, ok)
		}),
		"getAttributeNode": k.reading(func(n *html.Node, at *nodes, call sobek.FunctionCall) any {
			name := call.Argument(0).String()
			if value, ok := lookUp(n, name); ok {
				return k.attribute(n, at, name, value)
			}
			return sobek.Undefined()
		}),
		"hasAttribute":  judging(hasAttribute),
		"hasAttributes": judging(func(n *html.Node, _ string) bool { return len(n.Attr) > 0 }),
		"hasChildNodes": judging(func(n *html.Node, _ string) bool { return n.FirstChild != nil }),
		"matches": judging(func(n *html.Node, selector string) bool {
			return goquery.NewDocumentFromNode(n).Is(selector)
		}),
		"firstChild": node(func(n *html.Node) *html.Node { return n.FirstChild }), "lastChild": node(func(n *html.Node) *html.Node { return n.LastChild }),
		"previousSibling": node(func(n *html.Node) *html.Node { return n.PrevSibling }), "nextSibling": node(func(n *html.Node) *html.Node { return n.NextSibling }),
		"parentNode": node(func(n *html.Node) *html.Node { return n.Parent }), "ownerDocument": node(root),
		"parentElement": node(func(n *html.Node) *html.Node {
			if p := n.Parent; p != nil && p.Type == html.ElementNode {
				return p
			}
			return nil
		}),
		"firstElementChild":      node(func(n *html.Node) *html.Node { return nextElement(n.FirstChild) }),
		"lastElementChild":       node(func(n *html.Node) *html.Node { return previousElement(n.LastChild) }),
		"nextElementSibling":     node(func(n *html.Node) *html.Node { return nextElement(n.NextSibling) }),
		"previousElementSibling": node(func(n *html.Node) *html.Node { return previousElement(n.PrevSibling) }),
		"childElementCount":      k.reading(func(n *html.Node, _ *nodes, _ sobek.FunctionCall) any { return len(elements(n, "")) }),
		"childNodes":             list(childNodes), "children": list(elements), "querySelectorAll": list(query),
		"getElementsByTagName": list(query),
		"getElementsByClassName": list(func(n *html.Node, names string) []*html.Node {
			return query(n, "."+strings.Join(strings.Fields(names), "."))
		}),
		"querySelector": k.reading(func(n *html.Node, at *nodes, call sobek.FunctionCall) any {
			if found := query(n, call.Argument(0).String()); len(found) > 0 {
				return k.element(found[0], at.address)
			}
			return sobek.Undefined()
		}),
	}
}

// reading makes a method of what a function reads from the first node; without
// a node it returns undefined.
func (k *kit) reading(of func(n *html.Node, at *nodes, call sobek.FunctionCall) any) method {
	return func(at *nodes, call sobek.FunctionCall) sobek.Value {
		if at.sel.Length() == 0 {
			return sobek.Undefined()
		}
		return k.rt.ToValue(of(at.sel.Get(0), at, call))
	}
}

// comparing makes a method that takes another element.
func (k *kit) comparing(holds func(a, b *html.Node) bool) method {
	return k.reading(func(n *html.Node, _ *nodes, call sobek.FunctionCall) any {
		other, ok := nodesOf(call.Argument(0))
		return ok && other.sel.Length() > 0 && holds(n, other.sel.Get(0))
	})
}

func (k *kit) attributes(n *html.Node, at *nodes, _ sobek.FunctionCall) any {
	o := k.rt.NewObject()
	for _, a := range n.Attr {
		_ = o.Set(a.Key, k.attribute(n, at, a.Key, a.Val)) // a plain property of a fresh object
	}
	return o
}

func (k *kit) attribute(n *html.Node, at *nodes, name, value string) *sobek.Object {
	o := k.rt.NewObject()
	// setting plain properties of a fresh object cannot fail
	_ = o.Set("name", name)
	_ = o.Set("value", value)
	_ = o.Set("ownerElement", k.element(n, at.address))
	return o
}

// Types of nodes, as the DOM numbers them.
const (
	elementType  = 1
	textType     = 3
	commentType  = 8
	documentType = 9
	doctypeType  = 10
)

func nodeType(n *html.Node) int {
	switch n.Type {
	case html.TextNode:
		return textType
	case html.CommentNode:
		return commentType
	case html.DocumentNode:
		return documentType
	case html.DoctypeNode:
		return doctypeType
	}
	return elementType
}

func nodeName(n *html.Node) string { return goquery.NodeName(goquery.NewDocumentFromNode(n).Selection) }

// nodeValue is the text of a text or comment, and undefined of others.
func nodeValue(n *html.Node) any {
	if n.Type == html.TextNode || n.Type == html.CommentNode {
		return n.Data
	}
	return sobek.Undefined()
}

// lang is the language of the nearest element that tells it.
func lang(n *html.Node) string {
	for ; n != nil; n = n.Parent {
		if value, ok := lookUp(n, "lang"); ok {
			return value
		}
	}
	return ""
}

func namespace(n *html.Node) string {
	switch n.Namespace {
	case "svg":
		return "http://www.w3.org/2000/svg"
	case "math":
		return "http://www.w3.org/1998/Math/MathML"
	}
	return "http://www.w3.org/1999/xhtml"
}

func root(n *html.Node) *html.Node {
	for n.Parent != nil {
		n = n.Parent
	}
	return n
}

func nextElement(n *html.Node) *html.Node {
	for n != nil && n.Type != html.ElementNode {
		n = n.NextSibling
	}
	return n
}

func previousElement(n *html.Node) *html.Node {
	for n != nil && n.Type != html.ElementNode {
		n = n.PrevSibling
	}
	return n
}

func childNodes(n *html.Node, _ string) []*html.Node {
	var all []*html.Node
	for child := range n.ChildNodes() {
		all = append(all, child)
	}
	return all
}

func elements(n *html.Node, _ string) []*html.Node {
	var all []*html.Node
	for child := range n.ChildNodes() {
		if child.Type == html.ElementNode {
			all = append(all, child)
		}
	}
	return all
}

func query(n *html.Node, selector string) []*html.Node {
	return goquery.NewDocumentFromNode(n).Find(selector).Nodes
}

// contains reports whether b is in a, or is a.
func contains(a, b *html.Node) bool {
	for ; b != nil; b = b.Parent {
		if a == b {
			return true
		}
	}
	return false
}

func outerHTML(n *html.Node) string {
	var b strings.Builder
	_ = html.Render(&b, n) // a builder takes everything
	return b.String()
}
