package k6http

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/grafana/sobek"

	"github.com/metachaos/metachaos/load/modules/wire"
)

// body is what a request carries.
type body struct {
	plain, wire []byte // before and after compression
	contentType string // what the content is, if the script says nothing else
	multipart   bool   // contentType holds the boundary and must be kept
}

// reader returns the body for net/http. An empty one goes out chunked, for its
// length is told as unknown; only a missing body has the length 0.
func (b *body) reader() io.ReadCloser { return io.NopCloser(bytes.NewReader(b.wire)) }

// readBody reads text, bytes, or an object, which makes a form: one with parts
// if any of its values is a file.
func (c *client) readBody(v sobek.Value) (*body, error) {
	if raw, ok := wire.Bytes(v); ok {
		raw = bytes.Clone(raw) // the script may change them while a request is under way
		return &body{plain: raw, wire: raw}, nil
	}
	o, ok := v.(*sobek.Object)
	if !ok || o.ClassName() == "String" {
		text, isText := v.Export().(string)
		if !isText {
			return nil, fmt.Errorf("body: want text, an ArrayBuffer, a typed array or an object of form fields, got %s", v)
		}
		raw := []byte(text)
		return &body{plain: raw, wire: raw}, nil
	}
	if o.ClassName() == "Array" {
		return nil, fmt.Errorf("body: want text, an ArrayBuffer, a typed array or an object of form fields, got an array: did you mean JSON.stringify?")
	}
	fields := formFields(c.rt, o)
	for _, f := range fields {
		if f.file != nil {
			return multipartBody(fields)
		}
	}
	form := url.Values{}
	for _, f := range fields {
		form.Add(f.name, f.text)
	}
	raw := []byte(form.Encode())
	return &body{plain: raw, wire: raw, contentType: "application/x-www-form-urlencoded"}, nil
}

// field is one value of a form.
type field struct {
	name, text string
	file       *fileData // nil for text
}

// formFields reads an object. The values of an array are fields of one name.
func formFields(rt *sobek.Runtime, o *sobek.Object) []field {
	var all []field
	for _, name := range o.Keys() {
		all = append(all, listFields(rt, name, o.Get(name))...)
	}
	return all
}

func listFields(rt *sobek.Runtime, name string, v sobek.Value) []field {
	list, ok := v.(*sobek.Object)
	if !ok || list.ClassName() != "Array" {
		return []field{newField(name, v)}
	}
	var all []field
	rt.ForOf(list, func(item sobek.Value) bool {
		all = append(all, newField(name, item))
		return true
	})
	return all
}

func newField(name string, v sobek.Value) field {
	if f, ok := recordOf[*fileData](v); ok {
		return field{name: name, file: f}
	}
	if o, ok := v.(*sobek.Object); ok && o.ClassName() == "Object" {
		if text, err := o.MarshalJSON(); err == nil {
			return field{name: name, text: string(text)}
		}
	}
	return field{name: name, text: v.String()}
}

// multipartBody writes a form with files.
func multipartBody(fields []field) (*body, error) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, f := range fields {
		part, err := w.CreatePart(f.partHeader())
		if err == nil {
			_, err = part.Write(f.content())
		}
		if err != nil {
			return nil, fmt.Errorf("body: write the part %s: %w", f.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("body: %w", err)
	}
	return &body{plain: b.Bytes(), wire: b.Bytes(), contentType: w.FormDataContentType(), multipart: true}, nil
}

func (f field) content() []byte {
	if f.file != nil {
		return f.file.data
	}
	return []byte(f.text)
}

func (f field) partHeader() textproto.MIMEHeader {
	header := textproto.MIMEHeader{}
	if f.file == nil {
		quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\r", "%0D", "\n", "%0A").Replace(f.name)
		header.Set("Content-Disposition", `form-data; name="`+quoted+`"`)
		return header
	}
	header.Set("Content-Disposition", multipart.FileContentDisposition(f.name, f.file.name))
	header.Set("Content-Type", f.file.contentType)
	return header
}

// fileData is a file of a form.
type fileData struct {
	data              []byte
	name, contentType string
}

// file is http.file(data, filename?, contentType?).
func (c *client) file(call sobek.FunctionCall) sobek.Value {
	f := &fileData{name: strconv.FormatInt(time.Now().UnixNano(), 10), contentType: "application/octet-stream"}
	content := call.Argument(0)
	if raw, ok := wire.Bytes(content); ok {
		f.data = bytes.Clone(raw)
	} else if text, ok := content.Export().(string); ok {
		f.data = []byte(text)
	} else {
		c.throw("http.file: want text, an ArrayBuffer or a typed array, got %s", content)
	}
	if v := call.Argument(1); !wire.Absent(v) && v.String() != "" {
		f.name = v.String()
	}
	if v := call.Argument(2); !wire.Absent(v) && v.String() != "" {
		f.contentType = v.String()
	}
	return newRecord(c.rt, f, "data", content, "filename", c.rt.ToValue(f.name), "content_type", c.rt.ToValue(f.contentType))
}
