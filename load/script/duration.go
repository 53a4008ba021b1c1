package script

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Duration is a time span in an option: a number of milliseconds or a text
// such as "1d2h3m4s5ms".
type Duration time.Duration

// ParseDuration reads the text form.
func ParseDuration(s string) (time.Duration, error) {
	if ms, err := strconv.ParseFloat(s, 64); err == nil {
		return milliseconds(ms)
	}
	var days time.Duration
	rest := s
	if d, after, ok := strings.Cut(s, "d"); ok {
		n, err := strconv.ParseUint(d, 10, 16)
		if err != nil {
			return 0, durationError(s)
		}
		days, rest = time.Duration(n)*24*time.Hour, after
		if rest == "" {
			return days, nil
		}
	}
	d, err := time.ParseDuration(rest)
	if err != nil {
		return 0, durationError(s)
	}
	return days + d, nil
}

func durationError(s string) error {
	return fmt.Errorf(`want a duration such as "1m30s" or a number of milliseconds, got %q`, s)
}

func milliseconds(ms float64) (time.Duration, error) {
	ns := ms * float64(time.Millisecond)
	if !(ns > -1<<62 && ns < 1<<62) {
		return 0, fmt.Errorf("want a number of milliseconds within a century, got %v", ms)
	}
	return time.Duration(ns), nil
}

// UnmarshalJSON reads either form.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	var parsed time.Duration
	var err error
	switch v := v.(type) {
	case float64:
		parsed, err = milliseconds(v)
	case string:
		parsed, err = ParseDuration(v)
	default:
		err = durationError(string(b))
	}
	*d = Duration(parsed)
	return err
}

// MarshalJSON writes the text form.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }
