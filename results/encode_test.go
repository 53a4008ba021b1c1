package results

import (
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/metachaos/metachaos/targets"
)

// fill sets every field of a struct to a drawn value, so that a field which is
// added to the vocabulary and forgotten by the encoder is found.
func fill(rt *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(rt, v.Field(i))
		}
	case reflect.String:
		v.SetString(rapid.OneOf(rapid.Just(""), rapid.StringMatching(`[a-z0-9-]{1,8}`), rapid.String()).Draw(rt, "text"))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.OneOf(rapid.Just(int64(0)), rapid.Int64()).Draw(rt, "integer"))
	case reflect.Uint64:
		v.SetUint(rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64()).Draw(rt, "count"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(rt, "flag"))
	case reflect.Slice:
		n := rapid.IntRange(0, 3).Draw(rt, "length")
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(rt, v.Index(i))
		}
	default:
		rt.Fatalf("no value for a field of type %s", v.Type())
	}
}

func sameAsEncodingJSON[T any](t *testing.T, encode func([]byte, T) ([]byte, error)) {
	rapid.Check(t, func(rt *rapid.T) {
		var record T
		fill(rt, reflect.ValueOf(&record).Elem())
		want, err := json.Marshal(record)
		if err != nil {
			rt.Fatal(err)
		}
		got, err := encode([]byte("before "), record)
		if err != nil || string(got) != "before "+string(want) {
			rt.Fatalf("encoded\n%s, %v, want\n%s", got, err, want)
		}
	})
}

func TestEventEncoding(t *testing.T) { sameAsEncodingJSON(t, appendEvent) }

func TestTruthEncoding(t *testing.T) { sameAsEncodingJSON[targets.Truth](t, appendTruth) }
