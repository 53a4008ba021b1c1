package k6html

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/PuerkitoBio/goquery"
	"github.com/grafana/sobek"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// propertyMethods are the properties that elements of some kinds have in the
// DOM, as functions. All elements have them here; where the attribute is
// missing, so is the value.
func (k *kit) propertyMethods() map[string]method {
	all := map[string]method{}
	add := func(name string, of func(n *html.Node, at *nodes) any) {
		all[name] = k.reading(func(n *html.Node, at *nodes, _ sobek.FunctionCall) any { return of(n, at) })
	}
	for _, name := range textProperties() {
		add(name, func(n *html.Node, _ *nodes) any { return attribute(n, attributeOf(name)) })
	}
	for _, name := range flagProperties() {
		add(name, func(n *html.Node, _ *nodes) any { return hasAttribute(n, attributeOf(name)) })
	}
	for name, missing := range numberProperties() {
		add(name, func(n *html.Node, _ *nodes) any { return number(n, attributeOf(name), missing) })
	}
	for _, name := range []string{"href", "src", "action", "formAction", "poster"} {
		add(name, func(n *html.Node, at *nodes) any { return link(n, attributeOf(name), at.address) })
	}
	for name, part := range urlParts() {
		add(name, func(n *html.Node, at *nodes) any {
			u, err := url.Parse(link(n, "href", at.address))
			if err != nil || u.Host == "" && u.Path == "" {
				return ""
			}
			return part(u)
		})
	}
	for name, of := range related() {
		add(name, func(n *html.Node, at *nodes) any { return k.list(of(n), at.address) })
	}
	add("form", func(n *html.Node, at *nodes) any { return k.element(formNode(n), at.address) })
	add("control", func(n *html.Node, at *nodes) any { return k.element(controlOf(n), at.address) })
	add("method", func(n *html.Node, _ *nodes) any { return strings.ToLower(orElse(attribute(n, "method"), "get")) })
	add("enctype", func(n *html.Node, _ *nodes) any {
		return orElse(attribute(n, "enctype"), "application/x-www-form-urlencoded")
	})
	add("type", func(n *html.Node, _ *nodes) any { return orElse(attribute(n, "type"), defaultType(n)) })
	add("value", func(n *html.Node, _ *nodes) any {
		if values, _ := valuesOf(n); len(values) > 0 {
			return values[0]
		}
		return sobek.Undefined()
	})
	add("text", func(n *html.Node, _ *nodes) any { return textContent(n) })
	add("selectedIndex", func(n *html.Node, _ *nodes) any { return selectedIndex(n) })
	add("index", func(n *html.Node, _ *nodes) any { return indexAmong(n, n.Data) })
	add("rowIndex", func(n *html.Node, _ *nodes) any { return indexAmong(n, "tr") })
	add("cellIndex", func(n *html.Node, _ *nodes) any { return indexAmong(n, "td, th") })
	add("length", func(n *html.Node, _ *nodes) any {
		if n.DataAtom == atom.Select {
			return len(options(n))
		}
		return len(query(n, controlSelector))
	})
	return all
}

const controlSelector = "button, fieldset, input, object, output, select, textarea"

// textProperties are those that are an attribute.
func textProperties() []string {
	return []string{"abbr", "accept", "acceptCharset", "accessKey", "align", "alt", "autocomplete", "charset", "cite", "content", "coords",
		"crossOrigin", "dateTime", "dirName", "download", "formEnctype", "formMethod", "formTarget", "headers", "hreflang", "htmlFor",
		"httpEquiv", "kind", "label", "longDesc", "max", "media", "min", "name", "pattern", "placeholder", "preload", "referrerPolicy",
		"rel", "scope", "shape", "sizes", "srclang", "srcset", "step", "target", "title", "useMap", "wrap"}
}

// flagProperties are those that are true if an attribute is there.
func flagProperties() []string {
	return []string{"allowFullscreen", "async", "autofocus", "autoplay", "checked", "controls", "default", "defaultChecked", "defaultMuted",
		"defaultSelected", "defer", "disabled", "formNoValidate", "isMap", "loop", "multiple", "muted", "noModule", "noValidate",
		"readOnly", "required", "reversed", "selected"}
}

// numberProperties are whole numbers, with what they are without an attribute.
func numberProperties() map[string]int {
	return map[string]int{"colSpan": 1, "cols": 20, "height": 0, "maxLength": -1, "minLength": -1, "rowSpan": 1, "size": 0, "span": 1,
		"start": 1, "tabIndex": 0, "width": 0}
}

// attributeOf returns the attribute that a property is made of.
func attributeOf(property string) string {
	switch property {
	case "acceptCharset":
		return "accept-charset"
	case "htmlFor":
		return "for"
	case "httpEquiv":
		return "http-equiv"
	case "defaultChecked", "defaultMuted", "defaultSelected":
		return strings.ToLower(strings.TrimPrefix(property, "default"))
	}
	return strings.ToLower(property)
}

// related are the properties that are several elements.
func related() map[string]func(*html.Node) []*html.Node {
	below := func(selector string) func(*html.Node) []*html.Node {
		return func(n *html.Node) []*html.Node { return query(n, selector) }
	}
	return map[string]func(*html.Node) []*html.Node{
		"elements": below(controlSelector), "options": options, "areas": below("area"), "rows": below("tr"), "cells": below("td, th"),
		"tBodies": below("tbody"), "caption": below("caption"), "tHead": below("thead"), "tFoot": below("tfoot"),
		"selectedOptions": func(n *html.Node) []*html.Node {
			return slices.DeleteFunc(options(n), func(o *html.Node) bool { return !hasAttribute(o, "selected") })
		},
		"labels": func(n *html.Node) []*html.Node {
			return slices.DeleteFunc(query(root(n), "label"), func(l *html.Node) bool { return controlOf(l) != n })
		},
	}
}

func urlParts() map[string]func(*url.URL) string {
	return map[string]func(*url.URL) string{
		"host": func(u *url.URL) string { return u.Host }, "hostname": func(u *url.URL) string { return u.Hostname() },
		"port": func(u *url.URL) string { return u.Port() }, "pathname": func(u *url.URL) string { return u.EscapedPath() },
		"protocol": func(u *url.URL) string { return u.Scheme + ":" }, "username": func(u *url.URL) string { return u.User.Username() },
		"origin": func(u *url.URL) string { return u.Scheme + "://" + u.Host },
		"hash":   func(u *url.URL) string { return prefixed("#", u.EscapedFragment()) },
		"search": func(u *url.URL) string { return prefixed("?", u.RawQuery) },
		"password": func(u *url.URL) string {
			password, _ := u.User.Password()
			return password
		},
	}
}

func prefixed(mark, text string) string {
	if text == "" {
		return ""
	}
	return mark + text
}

func orElse(text, missing string) string {
	if text == "" {
		return missing
	}
	return text
}

func number(n *html.Node, name string, missing int) int {
	if value, err := strconv.Atoi(strings.TrimSpace(attribute(n, name))); err == nil {
		return value
	}
	return missing
}

// link resolves an attribute against the address of the document. Without the
// attribute it is empty.
func link(n *html.Node, name, address string) string {
	text, ok := lookUp(n, name)
	if !ok {
		return ""
	}
	base, err := url.Parse(address)
	if err != nil || address == "" {
		return text
	}
	u, err := base.Parse(strings.TrimSpace(text))
	if err != nil {
		return text
	}
	return u.String()
}

func defaultType(n *html.Node) string {
	switch n.DataAtom {
	case atom.Input:
		return "text"
	case atom.Button:
		return "submit"
	case atom.Select:
		if hasAttribute(n, "multiple") {
			return "select-multiple"
		}
		return "select-one"
	case atom.Textarea, atom.Fieldset, atom.Output:
		return n.Data
	}
	return ""
}

// formNode returns the form that a control belongs to, or nil.
func formNode(n *html.Node) *html.Node {
	if id := attribute(n, "form"); id != "" {
		return byID(n, id)
	}
	for ; n != nil; n = n.Parent {
		if n.DataAtom == atom.Form {
			return n
		}
	}
	return nil
}

// controlOf returns the control that a label is for, or nil.
func controlOf(label *html.Node) *html.Node {
	if id := attribute(label, "for"); id != "" {
		return byID(label, id)
	}
	if found := query(label, controlSelector); len(found) > 0 {
		return found[0]
	}
	return nil
}

func byID(n *html.Node, id string) *html.Node {
	for found := range root(n).Descendants() {
		if attribute(found, "id") == id {
			return found
		}
	}
	return nil
}

func selectedIndex(n *html.Node) int {
	all := options(n)
	if i := slices.IndexFunc(all, func(o *html.Node) bool { return hasAttribute(o, "selected") }); i >= 0 || len(all) == 0 {
		return i
	}
	return 0
}

// indexAmong tells the place of an element among its siblings of a kind.
func indexAmong(n *html.Node, kind string) int {
	return goquery.NewDocumentFromNode(n).PrevAllFiltered(kind).Length()
}
