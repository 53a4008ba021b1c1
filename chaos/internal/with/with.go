// Package with turns the configuration of a step into text and back, for where
// there is no plan file at hand: behind a plugin's wire, and in tests.
package with

import (
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Strict returns a decoder for a step whose configuration is this YAML (or
// JSON). Unknown keys and wrong types are errors with their line and column;
// empty text leaves the struct as it is.
func Strict(text []byte) func(into any) error {
	return func(into any) error {
		file, err := parser.ParseBytes(text, 0)
		if err != nil {
			return located(err)
		}
		for _, doc := range file.Docs {
			if doc.Body == nil || doc.Body.Type() == ast.NullType || doc.Body.Type() == ast.CommentType {
				continue // decoding it would wipe the defaults
			}
			if err := yaml.NodeToValue(doc.Body, into, yaml.Strict()); err != nil {
				return located(err)
			}
		}
		return nil
	}
}

func located(err error) error {
	var at yaml.Error
	if errors.As(err, &at) && at.GetToken() != nil {
		p := at.GetToken().Position
		return fmt.Errorf("with:%d:%d: %s", p.Line, p.Column, at.GetMessage())
	}
	return fmt.Errorf("with: %w", err)
}

// Text returns as YAML whatever the decoder reads; nil for a nil decoder or an
// empty configuration.
func Text(decode func(into any) error) ([]byte, error) {
	if decode == nil {
		return nil, nil
	}
	var all map[string]any
	if err := decode(&all); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, nil
	}
	text, err := yaml.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	return text, nil
}
