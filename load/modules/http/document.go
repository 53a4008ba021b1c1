package k6http

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/PuerkitoBio/goquery"
	"github.com/grafana/sobek"
	"github.com/tidwall/gjson"

	k6html "github.com/metachaos/metachaos/load/modules/html"
	"github.com/metachaos/metachaos/load/modules/wire"
)

// responsePrototype makes the methods of responses.
func (c *client) responsePrototype() *sobek.Object {
	o := c.rt.NewObject()
	for name, m := range map[string]func(*response, sobek.FunctionCall) (sobek.Value, error){
		"json": (*response).parseJSON, "html": (*response).html, "submitForm": (*response).submitForm, "clickLink": (*response).clickLink,
	} {
		set(o, name, native(func(call sobek.FunctionCall) sobek.Value {
			this, _ := call.This.(*sobek.Object)
			if this == nil {
				c.throw("response.%s: want to be called on a response, got %s", name, call.This)
			}
			r, ok := this.Export().(*response)
			if !ok {
				c.throw("response.%s: want to be called on a response, got %s", name, call.This)
			}
			v, err := m(r, call)
			if err != nil {
				c.throw("response.%s: %w", name, err)
			}
			return v
		}))
	}
	return o
}

// parseJSON is response.json(path?). The path is one of gjson; without a value
// there, and for a body that is no JSON, it gives undefined. Without a path, a
// body that is no JSON throws.
func (r *response) parseJSON(call sobek.FunctionCall) (sobek.Value, error) {
	if r.o.content == nil {
		return nil, r.bodyless()
	}
	if path := call.Argument(0); !wire.Absent(path) {
		if !r.valid && !gjson.ValidBytes(r.o.content) {
			return sobek.Undefined(), nil
		}
		r.valid = true
		return r.at(gjson.GetBytes(r.o.content, path.String()))
	}
	if r.json == nil {
		v, err := r.client.parse(r.o.content)
		if err != nil {
			return nil, describeJSON(r.o.content, err)
		}
		r.json, r.valid = v, true
	}
	return r.json, nil
}

func (r *response) at(found gjson.Result) (sobek.Value, error) {
	rt := r.client.rt
	switch {
	case !found.Exists():
		return sobek.Undefined(), nil
	case found.Type == gjson.String:
		return rt.ToValue(found.Str), nil
	case found.Type == gjson.Number:
		return rt.ToValue(found.Num), nil
	case found.Type == gjson.Null:
		return sobek.Null(), nil
	case found.Type != gjson.JSON:
		return rt.ToValue(found.Bool()), nil
	}
	return r.client.parse([]byte(found.Raw))
}

// parse is JSON.parse.
func (c *client) parse(text []byte) (sobek.Value, error) {
	if c.parseJSON == nil {
		c.parseJSON, _ = sobek.AssertFunction(c.rt.GlobalObject().Get("JSON").(*sobek.Object).Get("parse"))
	}
	return c.parseJSON(sobek.Undefined(), c.rt.ToValue(string(text)))
}

// describeJSON tells where a text stops being JSON.
func describeJSON(text []byte, err error) error {
	var v any
	var syntax *json.SyntaxError
	if !errors.As(json.Unmarshal(text, &v), &syntax) {
		return fmt.Errorf("the body is no JSON: %w", err)
	}
	before := text[:min(int(syntax.Offset), len(text))]
	line := 1 + strings.Count(string(before), "\n")
	column := len(before) - 1 - strings.LastIndex(string(before), "\n")
	return fmt.Errorf("the body is no JSON: line %d, character %d: %w", line, column, syntax)
}

func (r *response) bodyless() error {
	if r.o.err != nil {
		return fmt.Errorf("there is no body, as the request failed: %s", r.o.text)
	}
	return fmt.Errorf("there is no body: it was discarded, as params.responseType or the option discardResponseBodies say")
}

// document returns the body as a selection.
func (r *response) document() (*sobek.Object, error) {
	if r.o.content == nil {
		return nil, r.bodyless()
	}
	return k6html.Parse(r.client.host, string(r.o.content), r.o.final.text)
}

func (r *response) html(call sobek.FunctionCall) (sobek.Value, error) {
	document, err := r.document()
	if err != nil {
		return nil, err
	}
	if selector := call.Argument(0); !wire.Absent(selector) {
		return k6html.Find(r.client.host, document, selector.String()), nil
	}
	return document, nil
}

// option reads one of the named arguments of a method.
func option(call sobek.FunctionCall, name string) sobek.Value {
	if o, ok := call.Argument(0).(*sobek.Object); ok {
		if v := o.Get(name); v != nil {
			return v
		}
	}
	return sobek.Undefined()
}

func textOption(call sobek.FunctionCall, name, absent string) string {
	if v := option(call, name); !wire.Absent(v) {
		return v.String()
	}
	return absent
}

// clickLink is response.clickLink({selector, params}).
func (r *response) clickLink(call sobek.FunctionCall) (sobek.Value, error) {
	document, err := r.document()
	if err != nil {
		return nil, err
	}
	selector := textOption(call, "selector", "a[href]")
	link := k6html.Selected(document).Find(selector).First()
	if link.Length() == 0 {
		return nil, fmt.Errorf("no element matches %q", selector)
	}
	target, ok := link.Attr("href")
	if !ok {
		return nil, fmt.Errorf("the element that matches %q has no attribute href", selector)
	}
	to, err := r.o.final.url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("follow link: %w", err)
	}
	return r.client.do(http.MethodGet, r.client.rt.ToValue(to.String()), nil, option(call, "params")), nil
}

// submitForm is response.submitForm({formSelector, fields, submitSelector,
// params}).
func (r *response) submitForm(call sobek.FunctionCall) (sobek.Value, error) {
	document, err := r.document()
	if err != nil {
		return nil, err
	}
	selector := textOption(call, "formSelector", "form")
	form := k6html.Selected(document).Find(selector).First()
	if form.Length() == 0 {
		return nil, fmt.Errorf("no form matches %q", selector)
	}
	values := formValues(form, form.Find(textOption(call, "submitSelector", `[type="submit"]`)).First())
	if fields, ok := option(call, "fields").(*sobek.Object); ok {
		for _, name := range fields.Keys() {
			values.Del(name)
			for _, f := range listFields(r.client.rt, name, fields.Get(name)) {
				values.Add(name, f.text)
			}
		}
	}
	to, err := r.o.final.url.Parse(form.AttrOr("action", ""))
	if err != nil {
		return nil, fmt.Errorf("find the action of the form: %w", err)
	}
	method := strings.ToUpper(form.AttrOr("method", http.MethodGet))
	rt := r.client.rt
	if method == http.MethodGet {
		to.RawQuery = values.Encode()
		return r.client.do(method, rt.ToValue(to.String()), nil, option(call, "params")), nil
	}
	content := rt.NewObject()
	for _, name := range sortedKeys(values) {
		set(content, name, rt.NewArray(anys(values[name])...))
	}
	return r.client.do(method, rt.ToValue(to.String()), content, option(call, "params")), nil
}

// formValues are what the controls of a form send, and the button.
func formValues(form, button *goquery.Selection) url.Values {
	values := url.Values{}
	for _, f := range k6html.Fields(form) {
		values.Add(f.Name, f.Value)
	}
	if name, ok := button.Attr("name"); ok && name != "" {
		values.Set(name, button.AttrOr("value", ""))
	}
	return values
}
