package results

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/metachaos/metachaos/targets"
)

// Events and truth come by the million, and encoding/json takes several times
// as long as appending their fields, so these two are written by hand. What
// they write is what encoding/json writes, field for field; a test holds them
// to it.

// object appends the fields of one JSON object. The zero fields of a record
// are left out, as the omitempty tags say.
type object struct {
	line  []byte
	first int // length of line before the first field
}

func beginObject(line []byte) object {
	line = append(line, '{')
	return object{line: line, first: len(line)}
}

func (o *object) end() []byte { return append(o.line, '}') }

// name begins a field. It is given as it is written: quoted, with its colon.
func (o *object) name(name string) {
	if len(o.line) > o.first {
		o.line = append(o.line, ',')
	}
	o.line = append(o.line, name...)
}

// integer writes the field even if it is zero.
func (o *object) integer(name string, v int64) {
	o.name(name)
	o.line = strconv.AppendInt(o.line, v, 10)
}

// text writes the field even if it is empty.
func (o *object) text(name, v string) {
	o.name(name)
	o.line = appendString(o.line, v)
}

func (o *object) someInteger(name string, v int64) {
	if v != 0 {
		o.integer(name, v)
	}
}

func (o *object) someCount(name string, v uint64) {
	if v != 0 {
		o.name(name)
		o.line = strconv.AppendUint(o.line, v, 10)
	}
}

func (o *object) someText(name, v string) {
	if v != "" {
		o.text(name, v)
	}
}

func (o *object) someTrue(name string, v bool) {
	if v {
		o.name(name)
		o.line = append(o.line, "true"...)
	}
}

func (o *object) someObject(name string, v targets.Object) {
	switch {
	case v == targets.Object{}:
	case isPlain(string(v.Kind)) && isPlain(v.ID):
		o.name(name)
		o.line = append(append(o.line, '"'), v.Kind...)
		o.line = append(append(append(o.line, '/'), v.ID...), '"')
	default:
		o.text(name, v.String())
	}
}

func appendString(line []byte, s string) []byte {
	if isPlain(s) {
		return append(append(append(line, '"'), s...), '"')
	}
	quoted, err := json.Marshal(s)
	if err != nil {
		panic("encode a string: " + err.Error()) // strings always have a JSON form
	}
	return append(line, quoted...)
}

// isPlain reports whether s stands in JSON as it is. It may say no of a string
// that does.
func isPlain(s string) bool {
	// Bits of the ASCII characters that encoding/json escapes or that are not
	// printable.
	const low = 1<<32 - 1 | 1<<'"' | 1<<'&' | 1<<'<' | 1<<'>'
	const high = 1<<('\\'-64) | 1<<(0x7f-64)
	for i := range len(s) {
		c := s[i]
		if c < 64 && uint64(low)>>c&1 != 0 || c >= 64 && (c >= utf8.RuneSelf || uint64(high)>>(c-64)&1 != 0) {
			return false
		}
	}
	return true
}

func appendEvent(line []byte, e targets.Event) ([]byte, error) {
	o := beginObject(line)
	o.integer(`"start":`, int64(e.Start))
	o.integer(`"end":`, int64(e.End))
	o.text(`"client":`, e.Client)
	o.text(`"verb":`, string(e.Verb))
	o.someObject(`"object":`, e.Object)
	o.someText(`"key":`, e.Key)
	o.text(`"outcome":`, string(e.Outcome))
	o.someText(`"code":`, string(e.Code))
	o.someCount(`"sent":`, uint64(e.Sent))
	o.someCount(`"served":`, uint64(e.Served))
	o.someText(`"node":`, string(e.Node))
	o.someText(`"shard":`, e.Shard)
	o.someText(`"cache":`, string(e.Cache))
	o.someText(`"cause":`, string(e.Cause))
	if len(e.Hops) > 0 {
		o.name(`"hops":`)
		o.line = appendHops(o.line, e.Hops)
	}
	o.someInteger(`"hop_count":`, int64(e.HopCount))
	o.someInteger(`"documents":`, int64(e.Documents))
	o.someInteger(`"duplicates":`, int64(e.Duplicates))
	o.someInteger(`"missing":`, int64(e.Missing))
	o.someCount(`"version":`, e.Version)
	o.someTrue(`"shared":`, e.Shared)
	o.someCount(`"seq":`, e.Seq)
	o.someInteger(`"applied":`, int64(e.Applied))
	return o.end(), nil
}

func appendHops(line []byte, hops []targets.Hop) []byte {
	for i, h := range hops {
		separator := byte(',')
		if i == 0 {
			separator = '['
		}
		o := beginObject(append(line, separator))
		o.text(`"node":`, string(h.Node))
		o.someCount(`"epoch":`, uint64(h.Epoch))
		o.someCount(`"served":`, uint64(h.Served))
		o.someText(`"code":`, string(h.Code))
		o.someText(`"owner":`, h.Owner)
		line = o.end()
	}
	return append(line, ']')
}

func appendTruth(line []byte, t targets.Truth) ([]byte, error) {
	o := beginObject(line)
	o.integer(`"at":`, int64(t.At))
	o.text(`"kind":`, string(t.Kind))
	o.someObject(`"object":`, t.Object)
	o.someCount(`"epoch":`, uint64(t.Epoch))
	o.someText(`"owner":`, t.Owner)
	o.someText(`"to":`, t.To)
	o.someText(`"cause":`, string(t.Cause))
	o.someText(`"stage":`, string(t.Stage))
	o.someTrue(`"lost":`, t.Lost)
	o.someInteger(`"objects":`, int64(t.Objects))
	return o.end(), nil
}

// appendJSON writes the records of which there are few.
func appendJSON[T any](line []byte, record T) ([]byte, error) {
	b, err := json.Marshal(record)
	return append(line, b...), err
}
