package plans

import (
	"fmt"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// Duration is a time span in a plan, written like 10s, 1m30s or 250ms. It is
// never negative.
type Duration time.Duration

// defaultMaxDuration bounds a fault when the plan does not.
const defaultMaxDuration = 10 * time.Minute

// UnmarshalYAML reads a duration and reports its place when it is none.
func (d *Duration) UnmarshalYAML(node ast.Node) error {
	text := node.GetToken().Value
	v, err := time.ParseDuration(text)
	if err != nil || v < 0 {
		return &Error{
			Position: positionOf("", node),
			Message:  fmt.Sprintf("bad duration %q", text),
			Hint:     "want a number with a unit, for example 250ms, 10s or 1m30s",
		}
	}
	*d = Duration(v)
	return nil
}

// String returns the form that a plan is written in.
func (d Duration) String() string { return time.Duration(d).String() }
