package analysis

import (
	"fmt"
	"math"
	"strconv"
)

// Number is a float64 that always has a JSON form: infinities are the texts
// "Infinity" and "-Infinity", and what is not a number is null.
type Number float64

// MarshalJSON writes the shortest form that reads back as the same number.
func (n Number) MarshalJSON() ([]byte, error) {
	switch v := float64(n); {
	case math.IsNaN(v):
		return []byte("null"), nil
	case math.IsInf(v, 1):
		return []byte(`"Infinity"`), nil
	case math.IsInf(v, -1):
		return []byte(`"-Infinity"`), nil
	default:
		return strconv.AppendFloat(nil, v, 'g', -1, 64), nil
	}
}

// UnmarshalJSON is the inverse of [Number.MarshalJSON].
func (n *Number) UnmarshalJSON(b []byte) error {
	switch s := string(b); s {
	case "null":
		*n = Number(math.NaN())
	case `"Infinity"`:
		*n = Number(math.Inf(1))
	case `"-Infinity"`:
		*n = Number(math.Inf(-1))
	default:
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return fmt.Errorf("parse number %s: want a number, null, \"Infinity\" or \"-Infinity\"", s)
		}
		*n = Number(v)
	}
	return nil
}

// String returns a form for people, with four significant digits, or all
// digits of a whole number.
func (n Number) String() string {
	v := float64(n)
	switch {
	case math.IsInf(v, 1):
		return "infinite"
	case v == math.Trunc(v) && math.Abs(v) < 1e15:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
