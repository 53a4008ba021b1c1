package plans

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/metachaos/metachaos/internal/suggest"
)

// Parse reads a plan. The file name stands in errors only. The error, if any,
// is an [Errors].
func Parse(file string, data []byte) (*Plan, error) {
	parsed, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, Errors{convert(file, err)}
	}
	var body ast.Node
	for _, doc := range parsed.Docs {
		if doc.Body == nil {
			continue
		}
		if body != nil {
			return nil, Errors{{Position: positionOf(file, doc.Body), Message: "a plan file holds one document, and here a second begins"}}
		}
		body = doc.Body
	}
	if body == nil {
		return nil, Errors{{Position: Position{File: file}, Message: "the plan is empty",
			Hint: "start from a shipped one: metachaos list plans"}}
	}
	p := &Plan{Load: Load{MinOperations: DefaultMinOperations}}
	if err := decodeNode(file, body, p); err != nil {
		return nil, err
	}
	locate(file, body, p)
	if errs := validate(file, p); len(errs) > 0 {
		return nil, errs
	}
	return p, nil
}

// decodeNode decodes strictly: first every unknown key is reported, with the
// nearest known one, then the values are read.
func decodeNode(file string, node ast.Node, into any) error {
	if errs := unknownKeys(file, node, reflect.TypeOf(into)); len(errs) > 0 {
		return errs
	}
	if err := yaml.NodeToValue(node, into); err != nil {
		return Errors{convert(file, err)}
	}
	return nil
}

// convert turns an error of the YAML library, or one of ours that passed
// through it, into an Error with a position.
func convert(file string, err error) *Error {
	var ours *Error
	if errors.As(err, &ours) {
		ours.Position.File = file
		return ours
	}
	var mismatch *yaml.TypeError
	if errors.As(err, &mismatch) {
		e := &Error{Position: Position{File: file}, Message: fmt.Sprintf("got a %s, want a %s", plainType(mismatch.SrcType), plainType(mismatch.DstType))}
		if tok := mismatch.Token; tok != nil {
			e.Message = fmt.Sprintf("%q is a %s, want a %s", tok.Value, plainType(mismatch.SrcType), plainType(mismatch.DstType))
			e.Position.Line, e.Position.Column = tok.Position.Line, tok.Position.Column
		}
		return e
	}
	var theirs yaml.Error
	if errors.As(err, &theirs) {
		e := &Error{Position: Position{File: file}, Message: theirs.GetMessage()}
		if tok := theirs.GetToken(); tok != nil && tok.Position != nil {
			e.Position.Line, e.Position.Column = tok.Position.Line, tok.Position.Column
		}
		return e
	}
	return &Error{Position: Position{File: file}, Message: err.Error()}
}

// plainType names a Go type in the words of a plan's author.
func plainType(t reflect.Type) string {
	switch {
	case t == nil:
		return "value of another type"
	case t == reflect.TypeFor[time.Duration]() || t == reflect.TypeFor[Duration]():
		return "duration such as 250ms, 10s or 1m30s"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "whole number"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.String:
		return "text"
	case reflect.Slice, reflect.Array:
		return "list"
	case reflect.Map, reflect.Struct:
		return "mapping"
	case reflect.Pointer:
		return plainType(t.Elem())
	default:
		return t.String()
	}
}

func positionOf(file string, node ast.Node) Position {
	p := Position{File: file}
	if m, ok := node.(*ast.MappingNode); ok && len(m.Values) > 0 {
		node = m.Values[0].Key // a mapping's own token is its first colon
	} else if v, ok := node.(*ast.MappingValueNode); ok {
		node = v.Key
	}
	if tok := node.GetToken(); tok != nil && tok.Position != nil {
		p.Line, p.Column = tok.Position.Line, tok.Position.Column
	}
	return p
}

// unknownKeys walks the document beside the type that it will be decoded into.
func unknownKeys(file string, node ast.Node, typ reflect.Type) Errors {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if decodesItself(typ) || node == nil {
		return nil
	}
	var errs Errors
	switch typ.Kind() {
	case reflect.Struct:
		entries, ok := mappingOf(node)
		if !ok {
			if node.Type() == ast.NullType {
				return nil
			}
			return Errors{{Position: positionOf(file, node), Message: "expected a mapping here",
				Hint: "known keys: " + strings.Join(keysOf(typ), ", ")}}
		}
		for _, entry := range entries {
			key := entry.Key.GetToken().Value
			field, ok := fieldByKey(typ, key)
			if !ok {
				errs = append(errs, &Error{Position: positionOf(file, entry.Key),
					Message: fmt.Sprintf("unknown field %q", key), Hint: suggest.Name(key, keysOf(typ))})
				continue
			}
			errs = append(errs, unknownKeys(file, entry.Value, field.Type)...)
		}
	case reflect.Slice:
		if seq, ok := node.(*ast.SequenceNode); ok {
			for _, item := range seq.Values {
				errs = append(errs, unknownKeys(file, item, typ.Elem())...)
			}
		}
	}
	return errs
}

func decodesItself(typ reflect.Type) bool {
	_, ok := reflect.New(typ).Interface().(interface{ UnmarshalYAML(ast.Node) error })
	return ok
}

func mappingOf(node ast.Node) ([]*ast.MappingValueNode, bool) {
	switch n := node.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}
	return nil, false
}

func fieldByKey(typ reflect.Type, key string) (reflect.StructField, bool) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		if name := yamlKey(f); name != "" && name == key {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

func keysOf(typ reflect.Type) []string {
	var keys []string
	for i := range typ.NumField() {
		if name := yamlKey(typ.Field(i)); name != "" {
			keys = append(keys, name)
		}
	}
	return keys
}

// yamlKey is the key that a field is decoded from, or empty for none.
func yamlKey(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	if name == "-" || !f.IsExported() {
		return ""
	}
	if name == "" {
		return strings.ToLower(f.Name)
	}
	return name
}
