package wire

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/grafana/sobek"

	"github.com/metachaos/metachaos/load/script"
	"github.com/metachaos/metachaos/results"
)

// Throw raises an error of Go as a JavaScript exception.
func Throw(h script.Host, format string, args ...any) {
	panic(h.Runtime().NewGoError(fmt.Errorf(format, args...)))
}

// Absent reports whether a value is undefined, null or not there at all.
func Absent(v sobek.Value) bool { return v == nil || sobek.IsUndefined(v) || sobek.IsNull(v) }

// Bytes returns the bytes of an ArrayBuffer or of a view of one. They are
// shared with the script.
func Bytes(v sobek.Value) ([]byte, bool) {
	o, ok := v.(*sobek.Object)
	if !ok {
		return nil, false
	}
	switch b := o.Export().(type) {
	case sobek.ArrayBuffer:
		return b.Bytes(), true
	case []byte:
		return b, true
	}
	view := o.Get("buffer")
	if view == nil {
		return nil, false
	}
	buffer, ok := view.Export().(sobek.ArrayBuffer)
	if !ok {
		return nil, false
	}
	from := o.Get("byteOffset").ToInteger()
	return buffer.Bytes()[from : from+o.Get("byteLength").ToInteger()], true
}

// Duration reads a number of milliseconds or a text such as "1m30s".
func Duration(v sobek.Value) (time.Duration, error) {
	text, err := json.Marshal(v.Export())
	if err != nil {
		return 0, fmt.Errorf("want a duration, got %s", v)
	}
	var d script.Duration
	err = json.Unmarshal(text, &d)
	return time.Duration(d), err
}

// Strings reads an object whose values have a text: headers, tags.
func Strings(where string, v sobek.Value) (map[string]string, error) {
	if Absent(v) {
		return nil, nil
	}
	o, ok := v.(*sobek.Object)
	if !ok {
		return nil, fmt.Errorf("%s: want an object, got %s", where, v)
	}
	out := map[string]string{}
	for _, key := range o.Keys() {
		out[key] = o.Get(key).String()
	}
	return out, nil
}

// Tags returns the tags of samples: base, which are those of the VU when the
// operation began, those that the script gives, and the system tags that the
// options ask for.
func Tags(h script.ProtocolHost, base *results.Tags, own, system map[string]string) *results.Tags {
	all := map[string]string{}
	for name, value := range system {
		if h.Tagged(name) {
			all[name] = value
		}
	}
	maps.Copy(all, own)
	tags := base
	for _, name := range slices.Sorted(maps.Keys(all)) { // in order, so that few sets are made on the way
		tags = tags.With(name, all[name])
	}
	return tags
}

// Traffic records what a dialer has counted since the last time.
func Traffic(h script.ProtocolHost, d *Dialer, tags *results.Tags) {
	sent, received := d.Take()
	h.Sample(h.Builtin("data_sent"), float64(sent), tags)
	h.Sample(h.Builtin("data_received"), float64(received), tags)
}
