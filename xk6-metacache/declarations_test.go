package metacache_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/metachaos/metachaos/targets"
)

// The declarations name what the module has, and nothing else: its options
// with their defaults, the fields of results, the methods and the metrics.
func TestDeclarationsAreComplete(t *testing.T) {
	text, err := os.ReadFile("index.d.ts")
	if err != nil {
		t.Fatal(err)
	}
	declared := func(body, pattern string) (names []string) {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(body, -1) {
			names = append(names, m[1])
		}
		slices.Sort(names)
		return slices.Compact(names)
	}
	part := func(header string) string {
		_, after, ok := strings.Cut(string(text), header)
		if !ok {
			t.Fatalf("the declarations have no %q", header)
		}
		body, _, _ := strings.Cut(after, "\n  }\n")
		return body
	}
	same := func(what string, declared, have []string) {
		t.Helper()
		slices.Sort(have)
		if !slices.Equal(declared, have) {
			t.Errorf("%s: declared\n%v, the module has\n%v", what, declared, have)
		}
	}

	options := part("export interface FleetOptions {")
	o := play(t, setting{}, "new Fleet({ zzzzzzzzzzzz: 1 }); export default function () {}")
	known := regexp.MustCompile(`known: ([^)]+)\)`).FindStringSubmatch(o.err.Error())
	if known == nil {
		t.Fatal(o.err)
	}
	same("options", declared(options, `(?m)^    (\w+)\?:`), strings.Split(known[1], ", "))

	o = play(t, setting{target: func(context.Context) (targets.Target, error) { return instant{}, nil }}, `
		const fleet = new Fleet({ push: false });
		export default function () { console.log(Object.keys(fleet.read('item-1')).join()); console.log(Object.keys(fleet).join()); }`)
	if len(o.lines()) != 2 {
		t.Fatal(o.err, o.log.String())
	}
	same("fields", declared(part("export interface Result {"), `(?m)^    readonly (\w+):`), strings.Split(o.lines()[0], ","))
	same("methods", declared(part("export class Fleet implements"), `(?m)^    (\w+)\(.*\): `), strings.Split(o.lines()[1], ","))
	var metrics []string
	for _, m := range o.program.Registry().Metrics() {
		if strings.HasPrefix(m.Name, "metacache_") {
			metrics = append(metrics, m.Name)
		}
	}
	same("metrics", declared(string(text), "- `(metacache_\\w+)` \\((?:counter|trend|trend, ms|rate)\\)"), metrics)

	// A fleet that is given every declared default is the one that is given
	// none: VUs with different options would be refused.
	var defaults []string
	for _, m := range regexp.MustCompile(`(?s)@default ([^\n]+)\n     \*/\n    (\w+)\?:`).FindAllStringSubmatch(options, -1) {
		defaults = append(defaults, m[2]+": "+m[1])
	}
	if len(defaults) != strings.Count(options, "?:") {
		t.Errorf("%d options have a default, want all %d", len(defaults), strings.Count(options, "?:"))
	}
	o = play(t, setting{}, fmt.Sprintf("new Fleet(__VU === 0 ? {} : { %s }); export default function () {}", strings.Join(defaults, ", ")))
	if o.err != nil {
		t.Errorf("the declared defaults %v are not those of the module: %v", defaults, o.err)
	}
}
