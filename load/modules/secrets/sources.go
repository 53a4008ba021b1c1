// Package k6secrets is the module k6/secrets: values that scripts use and that
// must not show in a log.
package k6secrets

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/metachaos/metachaos/internal/suggest"
)

// Sources are the sources of secrets of one run. The zero Sources has none. It
// is filled before the run and safe for concurrent use after.
type Sources struct {
	byName   map[string]source
	standard string // the name of the default source
	hidden   hidden
}

// source is a set of secrets, by key.
type source map[string]string

// Add reads the definition of a source as the command line has it:
//
//	file=PATH                       lines of KEY=VALUE
//	file=filename=PATH,name=NAME,default
//	mock=KEY=VALUE,KEY=VALUE        values in the open, for trying things out
//	mock=name=NAME,default,KEY=VALUE
//
// The only source is the default one. readFile returns the content of a file.
func (s *Sources) Add(definition string, readFile func(string) ([]byte, error)) error {
	kind, rest, ok := strings.Cut(definition, "=")
	if !ok || rest == "" {
		return fmt.Errorf("secret source %q: want file=PATH or mock=KEY=VALUE", definition)
	}
	settings := parseSettings(rest)
	name := settings.take("name")
	if name == "" {
		name = kind
	}
	_, standard := settings["default"]
	delete(settings, "default")
	var values source
	var err error
	switch kind {
	case "file":
		values, err = fileSource(rest, settings, readFile)
	case "mock":
		values = source(settings)
	default:
		err = fmt.Errorf("there is no kind %q; %s", kind, suggest.Name(kind, []string{"file", "mock"}))
	}
	if err != nil {
		return fmt.Errorf("secret source %q: %w", definition, err)
	}
	return s.add(name, values, standard)
}

func (s *Sources) add(name string, values source, standard bool) error {
	if _, ok := s.byName[name]; ok {
		return fmt.Errorf("secret source: the name %q is taken; give this one another with name=", name)
	}
	if s.byName == nil {
		s.byName = map[string]source{}
	}
	s.byName[name] = values
	switch {
	case standard && s.standard != "":
		return fmt.Errorf("secret source %q: %q is the default already", name, s.standard)
	case standard:
		s.standard = name
	}
	return nil
}

type settings map[string]string

// parseSettings reads KEY=VALUE,KEY,…; quotes around a value are dropped.
func parseSettings(text string) settings {
	out := settings{}
	for item := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(item, "=")
		out[strings.TrimSpace(key)] = strings.Trim(value, `"`)
	}
	return out
}

func (s settings) take(key string) string {
	value := s[key]
	delete(s, key)
	return value
}

func fileSource(rest string, given settings, readFile func(string) ([]byte, error)) (source, error) {
	path := given.take("filename")
	if path == "" {
		path, _, _ = strings.Cut(rest, ",")
		delete(given, path)
	}
	if len(given) > 0 {
		return nil, fmt.Errorf("there is no setting %q; there are filename, name and default", slices.Sorted(maps.Keys(given))[0])
	}
	text, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("read secrets: %w", err)
	}
	values := source{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			return nil, fmt.Errorf("%s:%d: want KEY=VALUE", path, number) // without the line: it may be a secret
		}
		values[strings.TrimSpace(key)] = strings.TrimSpace(value)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return values, nil
}

// get returns a secret of a source; the empty name is the default source.
func (s *Sources) get(name, key string) (string, error) {
	from, err := s.source(name)
	if err != nil {
		return "", err
	}
	value, ok := s.byName[from][key]
	if !ok {
		return "", fmt.Errorf("secret source %q has no key %q", from, key)
	}
	s.hidden.add(value)
	return value, nil
}

// source returns the name of the source that a name means.
func (s *Sources) source(name string) (string, error) {
	known := slices.Sorted(maps.Keys(s.byName))
	switch {
	case len(known) == 0:
		return "", fmt.Errorf("there is no source of secrets: run with --secret-source=file=PATH")
	case name == "" && s.standard != "":
		return s.standard, nil
	case name == "" && len(known) == 1:
		return known[0], nil
	case name == "":
		return "", fmt.Errorf("none of the sources %s is the default: name one with source(name), or add default to its definition", strings.Join(known, ", "))
	}
	if _, ok := s.byName[name]; !ok {
		return "", fmt.Errorf("there is no source of secrets %q; %s", name, suggest.Name(name, known))
	}
	return name, nil
}
