package k6http

import (
	"fmt"
	"net/http"

	"github.com/grafana/sobek"

	"github.com/metachaos/metachaos/load/modules/wire"
)

// statuses is a set of HTTP statuses that a script expects.
type statuses struct{ ranges []statusRange }

type statusRange struct{ min, max int } // both included

// successful is what is expected by default.
func successful() *statuses { return &statuses{[]statusRange{{http.StatusOK, 399}}} }

func (s *statuses) hold(status int) bool {
	for _, r := range s.ranges {
		if r.min <= status && status <= r.max {
			return true
		}
	}
	return false
}

// expectedStatuses is http.expectedStatuses(200, {min: 400, max: 404}, …).
func (c *client) expectedStatuses(call sobek.FunctionCall) sobek.Value {
	if len(call.Arguments) == 0 {
		c.throw("http.expectedStatuses: want at least one status or {min, max}")
	}
	s := &statuses{}
	for i, v := range call.Arguments {
		r, err := readStatusRange(v)
		if err != nil {
			c.throw("http.expectedStatuses: argument %d: %w", i+1, err)
		}
		s.ranges = append(s.ranges, r)
	}
	return newRecord(c.rt, s)
}

func readStatusRange(v sobek.Value) (statusRange, error) {
	if status, ok := v.Export().(int64); ok {
		return statusRange{int(status), int(status)}, nil
	}
	if o, ok := v.(*sobek.Object); ok {
		least, greatest := o.Get("min"), o.Get("max")
		if least != nil && greatest != nil {
			a, okA := least.Export().(int64)
			b, okB := greatest.Export().(int64)
			if okA && okB {
				return statusRange{int(a), int(b)}, nil
			}
		}
	}
	return statusRange{}, fmt.Errorf("want a whole number or {min, max} of whole numbers, got %s", v)
}

// setResponseCallback decides which responses of the VU are expected; null
// has them not judged.
func (c *client) setResponseCallback(call sobek.FunctionCall) sobek.Value {
	expected, err := readExpected(call.Argument(0))
	if err != nil {
		c.throw("http.setResponseCallback: %w", err)
	}
	c.expected = expected
	return sobek.Undefined()
}

func readExpected(v sobek.Value) (*statuses, error) {
	if wire.Absent(v) {
		return nil, nil
	}
	s, ok := recordOf[*statuses](v)
	if !ok {
		return nil, fmt.Errorf("want http.expectedStatuses(…) or null, got %s", v)
	}
	return s, nil
}
