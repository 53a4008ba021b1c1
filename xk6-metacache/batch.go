package metacache

import (
	"github.com/grafana/sobek"

	"github.com/metachaos/metachaos/xk6-metacache/fleet"
)

// batch is the array that readMany returns. Its objects are made when they
// are looked at; apart from that it is an array like others.
type batch struct {
	handle  *handle
	results []fleet.Result
	values  []sobek.Value // nil where nobody has looked; nil as a whole at first
}

var _ sobek.DynamicArray = (*batch)(nil)

func (b *batch) touched() []sobek.Value {
	if b.values == nil {
		b.values = make([]sobek.Value, len(b.results))
	}
	return b.values
}

// Len implements [sobek.DynamicArray].
func (b *batch) Len() int {
	if b.values != nil {
		return len(b.values)
	}
	return len(b.results)
}

// Get implements [sobek.DynamicArray].
func (b *batch) Get(i int) sobek.Value {
	if i < 0 || i >= b.Len() {
		return nil
	}
	values := b.touched()
	if values[i] == nil {
		values[i] = b.handle.wrap(&b.results[i])
	}
	return values[i]
}

// Set implements [sobek.DynamicArray].
func (b *batch) Set(i int, v sobek.Value) bool {
	if i < 0 || i >= b.Len() && !b.SetLen(i+1) {
		return false
	}
	b.touched()[i] = v
	return true
}

// maxLen bounds the length that a script can set.
const maxLen = 1 << 24

// SetLen implements [sobek.DynamicArray].
func (b *batch) SetLen(n int) bool {
	if n < 0 || n > maxLen {
		return false
	}
	values := b.touched()
	for i := len(values); i < n; i++ {
		values = append(values, sobek.Undefined())
	}
	b.values = values[:n]
	return true
}
