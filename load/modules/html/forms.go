package k6html

import (
	"net/url"
	"strings"

	"github.com/PuerkitoBio/goquery"
	"github.com/grafana/sobek"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Field is what a control of a form sends.
type Field struct{ Name, Value string }

// Fields returns what the forms and controls of a selection send, as
// browsers do but for buttons: controls that have a name, are not disabled
// and, if they can be, are checked.
func Fields(sel *goquery.Selection) []Field {
	var all []Field
	add := func(_ int, control *goquery.Selection) {
		n := control.Get(0)
		name := attribute(n, "name")
		if name == "" || isDisabled(control) || !sends(n) {
			return
		}
		values, _ := valuesOf(n)
		for _, v := range values {
			all = append(all, Field{name, v})
		}
	}
	const controls = "input, select, textarea"
	sel.Each(func(_ int, one *goquery.Selection) {
		if one.Is(controls) {
			add(0, one)
			return
		}
		one.Find(controls).Each(add)
	})
	return all
}

func isDisabled(control *goquery.Selection) bool {
	return control.Is("[disabled]") || control.Closest("fieldset[disabled]").Length() > 0
}

func sends(n *html.Node) bool {
	if n.DataAtom != atom.Input {
		return true
	}
	switch strings.ToLower(attribute(n, "type")) {
	case "submit", "button", "image", "reset", "file":
		return false
	case "checkbox", "radio":
		return hasAttribute(n, "checked")
	}
	return true
}

// valuesOf returns the value of a control: none, one, or several if it is one
// that can have many.
func valuesOf(n *html.Node) (values []string, many bool) {
	switch n.DataAtom {
	case atom.Select:
		return selectedValues(n), hasAttribute(n, "multiple")
	case atom.Textarea:
		return []string{textContent(n)}, false
	case atom.Option:
		return []string{optionValue(n)}, false
	}
	if hasAttribute(n, "value") {
		return []string{attribute(n, "value")}, false
	}
	switch kind := strings.ToLower(attribute(n, "type")); {
	case n.DataAtom == atom.Input && (kind == "checkbox" || kind == "radio"):
		return []string{"on"}, false
	case n.DataAtom == atom.Input:
		return []string{""}, false
	}
	return nil, false
}

// selectedValues returns those of the options that are selected; of a list
// that shows one, the first that can be if none is.
func selectedValues(n *html.Node) []string {
	options := options(n)
	var values []string
	for _, o := range options {
		if hasAttribute(o, "selected") && !hasAttribute(o, "disabled") {
			values = append(values, optionValue(o))
		}
	}
	if hasAttribute(n, "multiple") {
		return values
	}
	if len(values) > 0 {
		return values[len(values)-1:]
	}
	for _, o := range options {
		if !hasAttribute(o, "disabled") {
			return []string{optionValue(o)}
		}
	}
	return nil
}

func options(n *html.Node) []*html.Node {
	return goquery.NewDocumentFromNode(n).Find("option").Nodes
}

func optionValue(n *html.Node) string {
	if hasAttribute(n, "value") {
		return attribute(n, "value")
	}
	return strings.Join(strings.Fields(textContent(n)), " ")
}

func (k *kit) serializeArray(n *nodes, _ sobek.FunctionCall) sobek.Value {
	var all []any
	for _, f := range Fields(n.sel) {
		o := k.rt.NewObject()
		// setting plain properties of a fresh object cannot fail
		_ = o.Set("name", f.Name)
		_ = o.Set("value", f.Value)
		all = append(all, o)
	}
	return k.rt.NewArray(all...)
}

// serializeObject returns the values by name; several of a name are an array.
func (k *kit) serializeObject(n *nodes, _ sobek.FunctionCall) sobek.Value {
	o := k.rt.NewObject()
	form := formOf(n.sel)
	for _, f := range Fields(n.sel) {
		var v any = f.Value
		if values := form[f.Name]; len(values) > 1 {
			v = k.rt.NewArray(anys(values)...)
		}
		_ = o.Set(f.Name, v) // cannot fail, as above
	}
	return o
}

// serialize returns the fields as a query, in the order of their names.
func (k *kit) serialize(n *nodes, _ sobek.FunctionCall) sobek.Value {
	return k.rt.ToValue(formOf(n.sel).Encode())
}

func formOf(sel *goquery.Selection) url.Values {
	form := url.Values{}
	for _, f := range Fields(sel) {
		form.Add(f.Name, f.Value)
	}
	return form
}

func hasAttribute(n *html.Node, name string) bool {
	_, ok := lookUp(n, name)
	return ok
}

func attribute(n *html.Node, name string) string {
	value, _ := lookUp(n, name)
	return value
}

func lookUp(n *html.Node, name string) (string, bool) {
	for _, a := range n.Attr {
		if a.Namespace == "" && a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

func textContent(n *html.Node) string { return goquery.NewDocumentFromNode(n).Text() }
