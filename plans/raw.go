package plans

import (
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Raw is a part of a plan whose shape its owner knows: the configuration of a
// target, a fault or an action. The zero Raw is an empty mapping.
type Raw struct {
	file string
	node ast.Node
	// owner locates the part when it is absent.
	owner Position
}

// UnmarshalYAML keeps the node for later.
func (r *Raw) UnmarshalYAML(node ast.Node) error {
	r.node = node
	return nil
}

// Position returns where the part stands.
func (r Raw) Position() Position {
	if r.node == nil {
		return r.owner
	}
	return positionOf(r.file, r.node)
}

// Decode fills the struct that into points to, by its yaml tags, and leaves
// fields that the plan does not name as they are. An unknown key or a wrong
// type is an [Errors] with positions.
func (r Raw) Decode(into any) error {
	if r.node == nil {
		return nil
	}
	return decodeNode(r.file, r.node, into)
}

// MarshalYAML writes the part as it was read.
func (r Raw) MarshalYAML() ([]byte, error) {
	if r.node == nil {
		return []byte("{}"), nil
	}
	return r.node.MarshalYAML()
}

// DecodeText decodes YAML text as strictly as a part of a plan. The name
// stands in errors in the place of a file's.
func DecodeText(name, text string, into any) error {
	parsed, err := parser.ParseBytes([]byte(text), 0)
	if err != nil {
		return Errors{convert(name, err)}
	}
	for _, doc := range parsed.Docs {
		if doc.Body == nil {
			continue
		}
		if err := decodeNode(name, doc.Body, into); err != nil {
			return err
		}
	}
	return nil
}
