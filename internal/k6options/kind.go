package k6options

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/metachaos/metachaos/internal/suggest"
	"github.com/metachaos/metachaos/load/script"
)

// kind is a type of option: how its text is read. What is read can be encoded
// as the JSON that a script would write.
type kind struct {
	name  string // shown in the usage text
	alone string // what a flag without a value means; empty demands one
	// flag and env read the text of a flag and of a variable.
	flag, env parser
	// join lays a further flag over those before; nil replaces.
	join func(before, next any) any
}

type parser func(text string) (any, error)

func kindOf(name string, parse parser) kind { return kind{name: name, flag: parse, env: parse} }

func (k kind) standingAlone(value string) kind {
	k.alone = value
	return k
}

func (k kind) joining(join func(before, next any) any) kind {
	k.join = join
	return k
}

func count() kind {
	return kindOf("int", func(text string) (any, error) {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("want a whole number, got %q", text)
		}
		return n, nil
	})
}

func toggle() kind {
	return kindOf("bool", func(text string) (any, error) {
		b, err := strconv.ParseBool(text)
		if err != nil {
			return nil, fmt.Errorf("want true or false, got %q", text)
		}
		return b, nil
	}).standingAlone("true")
}

func text(name string) kind {
	return kindOf(name, func(text string) (any, error) { return text, nil })
}

func oneOf(known ...string) kind {
	return kindOf(strings.Join(known, "|"), func(text string) (any, error) {
		if slices.Contains(known, text) {
			return text, nil
		}
		return nil, fmt.Errorf("want one of %s, got %q; %s", strings.Join(known, ", "), text, suggest.Name(text, known))
	})
}

// span is a duration. A number without a unit is milliseconds in scripts and
// in variables, and an oversight on a command line.
func span() kind {
	return kind{name: "duration",
		env: func(text string) (any, error) {
			d, err := script.ParseDuration(text)
			return script.Duration(d), err
		},
		flag: func(text string) (any, error) {
			if _, err := strconv.ParseFloat(text, 64); err == nil {
				return nil, fmt.Errorf("want a duration with its unit, for example %sms, got %q", text, text)
			}
			d, err := script.ParseDuration(text)
			return script.Duration(d), err
		}}
}

// list is texts separated by commas; given again, it goes on.
func list(name string) kind { return kindOf(name, splitTexts).joining(joinTexts) }

func splitTexts(text string) (any, error) {
	all := []string{}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			all = append(all, part)
		}
	}
	return all, nil
}

// array is one text each time it is given, with whatever commas it has.
func array(name string) kind {
	return kindOf(name, func(text string) (any, error) { return []string{text}, nil }).joining(joinTexts)
}

// outputs is an array of which a variable can hold several.
func outputs() kind {
	k := array("KIND[=ARGUMENT]")
	k.env = splitTexts
	return k
}

func joinTexts(before, next any) any { return append(before.([]string), next.([]string)...) }

// stageValue is a stage as scripts write it.
type stageValue struct {
	Duration script.Duration `json:"duration"`
	Target   int64           `json:"target"`
}

func stages() kind {
	return kindOf("DURATION:TARGET", parseStages).joining(func(before, next any) any {
		return append(before.([]stageValue), next.([]stageValue)...)
	})
}

func parseStages(text string) (any, error) {
	var all []stageValue
	for part := range strings.SplitSeq(text, ",") {
		duration, target, _ := strings.Cut(strings.TrimSpace(part), ":")
		d, err := script.ParseDuration(duration)
		n, err2 := strconv.ParseInt(target, 10, 64)
		if err != nil || err2 != nil {
			return nil, fmt.Errorf("bad stage %q: want DURATION:TARGET, for example 30s:10", part)
		}
		all = append(all, stageValue{script.Duration(d), n})
	}
	return all, nil
}

// tags reads NAME=VALUE pairs, in the environment also NAME:VALUE.
func tags() kind {
	return kindOf("NAME=VALUE", func(text string) (any, error) {
		all := map[string]string{}
		for part := range strings.SplitSeq(text, ",") {
			at := strings.IndexAny(part, "=:")
			if at <= 0 || at == len(part)-1 {
				return nil, fmt.Errorf("bad tag %q: want NAME=VALUE, neither empty", part)
			}
			all[part[:at]] = part[at+1:]
		}
		return all, nil
	}).joining(joinPairs)
}

func joinPairs(before, next any) any {
	m := before.(map[string]string)
	for name, value := range next.(map[string]string) {
		m[name] = value
	}
	return m
}

// variables reads one NAME=VALUE; without a value it is empty.
func variables() kind {
	return kindOf("NAME=VALUE", func(text string) (any, error) {
		name, value, _ := strings.Cut(text, "=")
		if !variableName(name) {
			return nil, fmt.Errorf("bad variable %q: want NAME=VALUE, with a name of letters, digits and underscores that starts with no digit", text)
		}
		return map[string]string{name: value}, nil
	}).joining(joinPairs)
}

func variableName(s string) bool {
	for i, c := range s {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// dns reads ttl=5m,select=random,policy=preferIPv4.
func dns() kind {
	known := []string{"ttl", "select", "policy"}
	return kindOf("ttl=…,select=…,policy=…", func(text string) (any, error) {
		all := map[string]string{}
		for part := range strings.SplitSeq(text, ",") {
			name, value, ok := strings.Cut(part, "=")
			if name = strings.TrimSpace(name); !ok || !slices.Contains(known, name) {
				return nil, fmt.Errorf("bad setting %q: want ttl=DURATION, select=first|random|roundRobin or policy=preferIPv4|preferIPv6|onlyIPv4|onlyIPv6|any; %s",
					part, suggest.Name(name, known))
			}
			all[name] = strings.TrimSpace(value)
		}
		return all, nil
	})
}

// ranges reads addresses in CIDR form, or single ones.
func ranges() kind {
	return kindOf("CIDR", func(text string) (any, error) {
		split, _ := splitTexts(text) // never fails
		for _, part := range split.([]string) {
			_, err := netip.ParsePrefix(part)
			if _, err2 := netip.ParseAddr(part); err != nil && err2 != nil {
				return nil, fmt.Errorf("bad range of addresses %q: want one such as 10.0.0.0/8", part)
			}
		}
		return split, nil
	}).joining(joinTexts)
}
