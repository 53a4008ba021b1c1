package k6http

import (
	"slices"
	"strconv"

	"github.com/grafana/sobek"
)

// record is an object whose properties scripts can read and change, and behind
// which this package finds a value of its own.
type record struct {
	of     any
	keys   []string
	values []sobek.Value
}

var _ sobek.DynamicObject = (*record)(nil)

// newRecord makes an object from names and values in turn. It has a prototype
// of its own.
func newRecord(rt *sobek.Runtime, of any, properties ...any) *sobek.Object {
	r := &record{of: of}
	for i := 0; i < len(properties); i += 2 {
		r.keys = append(r.keys, properties[i].(string))
		r.values = append(r.values, properties[i+1].(sobek.Value))
	}
	o := rt.NewDynamicObject(r)
	// an extensible object takes any prototype
	_ = o.SetPrototype(rt.NewObject())
	return o
}

// recordOf returns what is behind an object that newRecord made.
func recordOf[T any](v sobek.Value) (of T, ok bool) {
	o, isObject := v.(*sobek.Object)
	if !isObject {
		return of, false
	}
	r, isRecord := o.Export().(*record)
	if !isRecord {
		return of, false
	}
	of, ok = r.of.(T)
	return of, ok
}

func (r *record) Get(key string) sobek.Value {
	if i := slices.Index(r.keys, key); i >= 0 {
		return r.values[i]
	}
	return nil
}

func (r *record) Set(key string, v sobek.Value) bool {
	if i := slices.Index(r.keys, key); i >= 0 {
		r.values[i] = v
		return true
	}
	r.keys, r.values = append(r.keys, key), append(r.values, v)
	return true
}

func (r *record) Has(key string) bool { return slices.Contains(r.keys, key) }

func (r *record) Delete(key string) bool {
	if i := slices.Index(r.keys, key); i >= 0 {
		r.keys, r.values = slices.Delete(r.keys, i, i+1), slices.Delete(r.values, i, i+1)
	}
	return true
}

func (r *record) Keys() []string { return r.keys }

func itoa(n int) string { return strconv.Itoa(n) }
