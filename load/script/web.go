package script

import (
	_ "embed"
	"encoding/base64"
	"strings"
	"sync"
	"time"

	"github.com/grafana/sobek"
)

//go:embed web.js
var webSource string

// webGlobals compiles web.js for the first runtime that asks for something of
// it.
type webGlobals struct {
	once    sync.Once
	program *sobek.Program
	err     error
}

func (w *webGlobals) compile() (*sobek.Program, error) {
	w.once.Do(func() { w.program, w.err = sobek.Compile("web", webSource, true) })
	return w.program, w.err
}

// web returns a global that is written in JavaScript.
func (v *vm) web(name string) sobek.Value {
	if v.webExports == nil {
		program, err := v.program.web.compile()
		if err != nil {
			panic(err) // a defect of this program
		}
		value, err := v.rt.RunProgram(program)
		if err != nil {
			panic(err)
		}
		start, _ := sobek.AssertFunction(value)
		exports, err := start(sobek.Undefined(), v.webHost())
		if err != nil {
			panic(err)
		}
		v.webExports = exports.ToObject(v.rt)
	}
	return v.webExports.Get(name)
}

// webHost is what web.js needs of Go.
func (v *vm) webHost() *sobek.Object {
	o := v.rt.NewObject()
	// setting plain properties of a fresh object cannot fail
	_ = o.Set("unescape", native(func(call sobek.FunctionCall) sobek.Value {
		return v.rt.ToValue(strings.ToValidUTF8(unescape(call.Argument(0).String()), "\uFFFD"))
	}))
	_ = o.Set("parseURL", native(func(call sobek.FunctionCall) sobek.Value {
		var base *webURL
		if a := call.Argument(1); !sobek.IsUndefined(a) {
			base = v.mustParseURL(a.String(), nil)
		}
		return v.urlParts(v.mustParseURL(call.Argument(0).String(), base))
	}))
	_ = o.Set("setURL", native(func(call sobek.FunctionCall) sobek.Value {
		u := v.mustParseURL(call.Argument(0).String(), nil)
		return v.urlParts(u.withPart(call.Argument(1).String(), call.Argument(2).String()))
	}))
	return o
}

func (v *vm) mustParseURL(text string, base *webURL) *webURL {
	u, err := parseWebURL(text, base)
	if err != nil {
		v.throwType("%v", err)
	}
	return u
}

func (v *vm) urlParts(u *webURL) sobek.Value {
	o := v.rt.NewObject()
	for name, part := range map[string]string{"href": u.String(), "origin": u.origin(), "protocol": u.Scheme + ":",
		"username": u.Username, "password": u.Password, "host": u.host(), "hostname": u.Host, "port": u.Port,
		"pathname": u.Path, "search": u.Query, "hash": u.Fragment} {
		// setting plain properties of a fresh object cannot fail
		_ = o.Set(name, part)
	}
	return o
}

// btoa encodes a text whose characters are bytes.
func (v *vm) btoa(call sobek.FunctionCall) sobek.Value {
	var b []byte
	for _, r := range call.Argument(0).String() {
		if r > 0xff {
			v.throw("btoa: the text holds %q, which is no byte; encode it with TextEncoder first", r)
		}
		b = append(b, byte(r))
	}
	return v.rt.ToValue(base64.StdEncoding.EncodeToString(b))
}

// atob decodes to a text whose characters are bytes.
func (v *vm) atob(call sobek.FunctionCall) sobek.Value {
	text := strings.Join(strings.Fields(call.Argument(0).String()), "")
	if len(text)%4 == 0 {
		text = strings.TrimSuffix(strings.TrimSuffix(text, "="), "=")
	}
	b, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		v.throw("atob: the text is no base64: %w", err)
	}
	runes := make([]rune, len(b))
	for i, c := range b {
		runes[i] = rune(c)
	}
	return v.rt.ToValue(string(runes))
}

// performanceObject measures time from its first use in the VU.
func (v *vm) performanceObject() *sobek.Object {
	origin := time.Now()
	o := v.rt.NewObject()
	// setting plain properties of a fresh object cannot fail
	_ = o.Set("timeOrigin", float64(origin.UnixMicro())/1000)
	_ = o.Set("now", native(func(sobek.FunctionCall) sobek.Value { return v.rt.ToValue(milli(time.Since(origin))) }))
	return o
}
