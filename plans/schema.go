package plans

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/invopop/jsonschema"
)

//go:generate go test -run TestSchemaFileIsCurrent . -update

// Schema returns the JSON Schema (draft 2020-12) of plan files, generated
// from [Plan], for editors and other tools.
func Schema() ([]byte, error) {
	r := jsonschema.Reflector{
		FieldNameTag:               "yaml",
		RequiredFromJSONSchemaTags: true,
		ExpandedStruct:             true,
		Mapper:                     schemaOfOwnType,
	}
	s := r.Reflect(&Plan{})
	s.Title = "metachaos plan"
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode plan schema: %w", err)
	}
	return append(out, '\n'), nil
}

func schemaOfOwnType(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[Duration]():
		return &jsonschema.Schema{Type: "string", Pattern: `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|^0$`, Examples: []any{"250ms", "10s", "1m30s"}}
	case reflect.TypeFor[Raw]():
		return &jsonschema.Schema{Type: "object"}
	}
	return nil
}
