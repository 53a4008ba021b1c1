package output

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// settings reads the environment variables of one output. The first value
// that cannot be read is kept as the error.
type settings struct {
	env    Env
	prefix string
	err    error
}

// text returns the variable METACHAOS_<prefix><name> or K6_<prefix><name>, or
// the default.
func (s *settings) text(name, otherwise string) string {
	if value, _, ok := s.lookup(name); ok {
		return value
	}
	return otherwise
}

func (s *settings) lookup(name string) (value, variable string, ok bool) {
	for _, owner := range [...]string{"METACHAOS_", "K6_"} {
		variable = owner + s.prefix + name
		if value, ok = s.env.Lookup(variable); ok && value != "" {
			return value, variable, true
		}
	}
	return "", "", false
}

func (s *settings) flag(name string, otherwise bool) bool {
	return setting(s, name, otherwise, "true or false", strconv.ParseBool)
}

func (s *settings) duration(name string, otherwise time.Duration) time.Duration {
	return setting(s, name, otherwise, "a positive duration such as 5s", positive)
}

func positive(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err == nil && d <= 0 {
		err = fmt.Errorf("%v is not positive", d)
	}
	return d, err
}

// pairs reads a list such as "name:value,name:value", or with another sign
// between the two.
func (s *settings) pairs(name, between string) map[string]string {
	return setting(s, name, map[string]string{}, "NAME"+between+"VALUE, separated by commas", func(text string) (map[string]string, error) {
		all := map[string]string{}
		for pair := range strings.SplitSeq(text, ",") {
			key, value, ok := strings.Cut(pair, between)
			if key = strings.TrimSpace(key); !ok || key == "" {
				return nil, fmt.Errorf("no %q after a name", between)
			}
			all[key] = strings.TrimSpace(value)
		}
		return all, nil
	})
}

func setting[T any](s *settings, name string, otherwise T, want string, parse func(string) (T, error)) T {
	text, variable, ok := s.lookup(name)
	if !ok {
		return otherwise
	}
	value, err := parse(text)
	if err != nil && s.err == nil {
		s.err = fmt.Errorf("%s=%q: want %s: %w", variable, text, want, err)
	}
	return value
}
