package plans

import (
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite plan.schema.json")

const good = `version: 1
name: frozen-primary
seed: 7
target: {kind: reference, with: {shards: 2, replicas: 3, refresh: via-primary}}
load: {script: scripts/readwrite.js, env: {CLIENTS: "200"}}
timeline:
  - {id: freeze, at: 10s, for: 20s, fault: primary.freeze, on: {shard: s1}, with: {mode: write-stall}}
  - {id: bounce, at: 12s, action: node.restart, on: {shard: s1, role: secondary, index: 1}}
expect:
  - {metric: duplicates.rate, window: whole, is: "value==0"}
  - {metric: availability.goodput, window: after freeze, is: "ratio_to_baseline>0.9"}
guards: {max_concurrent: 1, max_duration: 60s, abort_if: ["availability.goodput<0.05 for 30s"]}
`

func TestParseReadsTheDesignsPlan(t *testing.T) {
	p, err := Parse("p.yaml", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	if p.Name != "frozen-primary" || p.Seed != 7 || p.Load.Env["CLIENTS"] != "200" {
		t.Errorf("top level read wrong: %+v", p)
	}
	freeze, bounce := p.Timeline[0], p.Timeline[1]
	if freeze.What() != "primary.freeze" || time.Duration(freeze.For) != 20*time.Second || freeze.On.Shard != "s1" {
		t.Errorf("freeze = %+v", freeze)
	}
	if bounce.What() != "node.restart" || bounce.On.Index != 1 || bounce.Position.String() != "p.yaml:8:6" {
		t.Errorf("bounce = %+v at %s", bounce, bounce.Position)
	}
	if p.Load.MinOperations != DefaultMinOperations {
		t.Errorf("min_operations = %d, want the default %d", p.Load.MinOperations, DefaultMinOperations)
	}
	if got := p.Guards.AbortPositions; len(got) != 1 || got[0].Line != 12 {
		t.Errorf("abort positions = %v, want one on line 12", got)
	}
	var with struct {
		Mode string `yaml:"mode"`
	}
	if err := freeze.With.Decode(&with); err != nil || with.Mode != "write-stall" {
		t.Errorf("with = %+v, %v", with, err)
	}
	if err := bounce.With.Decode(&with); err != nil {
		t.Errorf("decoding an absent with: %v", err)
	}
}

func TestRawDecodeIsStrict(t *testing.T) {
	p, err := Parse("p.yaml", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	var with struct {
		Shards   int    `yaml:"shards"`
		Replicas string `yaml:"replica"`
		Refresh  string `yaml:"refresh"`
	}
	err = p.Target.With.Decode(&with)
	if want := `p.yaml:4:45: unknown field "replicas" (did you mean "replica"?)`; err == nil || err.Error() != want {
		t.Errorf("error = %v\n want %s", err, want)
	}
	var wrong struct {
		Shards   []int  `yaml:"shards"`
		Replicas int    `yaml:"replicas"`
		Refresh  string `yaml:"refresh"`
	}
	if err := p.Target.With.Decode(&wrong); err == nil || err.Error() != "p.yaml:4:42: int was used where sequence is expected" {
		t.Errorf("wrong type: error = %v", err)
	}
}

// Each case changes the good plan in one place and names what the error must say.
func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"unknown top key", "seed: 7", "sed: 7", `p.yaml:3:1: unknown field "sed" (did you mean "seed"?)`},
		{"unknown nested key", "at: 10s,", "att: 10s,", `p.yaml:7:18: unknown field "att" (did you mean "at"?)`},
		{"nothing near", "seed: 7", "flavour: 7", `p.yaml:3:1: unknown field "flavour" (known: version, name,`},
		{"bad duration", "for: 20s", "for: 20", `p.yaml:7:32: bad duration "20" (want a number with a unit`},
		{"negative duration", "for: 20s", "for: -20s", `p.yaml:7:32: bad duration "-20s"`},
		{"wrong type", "seed: 7", "seed: seven", `p.yaml:3:7: "seven" is a text, want a whole number`},
		{"version", "version: 1", "version: 3", "p.yaml:1:1: unsupported plan version 3 (write version: 1)"},
		{"name", "name: frozen-primary", "name: Frozen primary", `bad or missing name "Frozen primary"`},
		{"no kind", "kind: reference, ", "", "p.yaml:4:1: target.kind is missing"},
		{"no script", "script: scripts/readwrite.js, ", "", "load.script is missing"},
		{"twice the same id", "id: bounce", "id: freeze", `p.yaml:8:6: step id "freeze" is used twice`},
		{"fault and action", "fault: primary.freeze", "fault: primary.freeze, action: node.restart", "names both a fault and an action"},
		{"neither", "fault: primary.freeze, ", "", "names neither a fault nor an action"},
		{"fault without for", "for: 20s, ", "", "does not say how long it lasts"},
		{"action with for", "at: 12s, ", "at: 12s, for: 1s, ", "happens at once"},
		{"role", "role: secondary", "role: secundary", `unknown role "secundary"`},
		{"window", "window: whole", "window: all", `p.yaml:10:6: bad window "all"`},
		{"window of no step", "window: after freeze", "window: after freze", `p.yaml:11:6: window "after freze" names no step of the timeline (did you mean "freeze"?)`},
		{"syntax", "{shard: s1}", "{shard: s1", "p.yaml:8:3: ',' or '}' must be specified"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !strings.Contains(good, c.old) {
				t.Fatalf("the good plan has no %q", c.old)
			}
			_, err := Parse("p.yaml", []byte(strings.Replace(good, c.old, c.new, 1)))
			var list Errors
			if !errors.As(err, &list) {
				t.Fatalf("error %v (%T) is no Errors", err, err)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error = %v\n want it to hold %s", err, c.want)
			}
		})
	}
}

func TestParseReportsEveryUnknownField(t *testing.T) {
	_, err := Parse("p.yaml", []byte(strings.NewReplacer("seed:", "sed:", "at: 10s", "att: 10s").Replace(good)))
	var list Errors
	if !errors.As(err, &list) || len(list) != 2 {
		t.Fatalf("error = %v, want both unknown fields", err)
	}
}

func TestParseOddDocuments(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "comment": "# nothing\n", "scalar": "hello", "list": "- 1\n- 2\n", "two": good + "---\n" + good, "null": "null\n",
		"timeline is no list": strings.Replace(good, "timeline:\n", "timeline: 3\n#", 1),
	} {
		if _, err := Parse("p.yaml", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), "p.yaml") {
			t.Errorf("%s: error = %v, want one that names the file", name, err)
		}
	}
}

func TestEveryLibraryPlanParses(t *testing.T) {
	names := Library()
	if len(names) == 0 {
		t.Fatal("the library is empty")
	}
	for _, name := range names {
		p, f, err := LoadFile(name, os.ReadFile)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := f.ReadFile(p.Load.Script); err != nil {
			t.Errorf("%s: its script: %v", name, err)
		}
		if p.Description == "" {
			t.Errorf("%s: no description", name)
		}
	}
}

func TestOpen(t *testing.T) {
	disk := map[string]string{"dir/p.yaml": good, "dir/s.js": "//"}
	read := func(p string) ([]byte, error) {
		if s, ok := disk[p]; ok {
			return []byte(s), nil
		}
		return nil, os.ErrNotExist
	}
	f, err := Open("dir/p.yaml", read)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := f.ReadFile("s.js"); err != nil || string(b) != "//" {
		t.Errorf("script beside the plan = %q, %v", b, err)
	}
	if _, err := Open("nope.yaml", read); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := Open("quickstat", read); err == nil || !strings.Contains(err.Error(), `did you mean "quickstart"?`) {
		t.Errorf("misspelt library plan: %v", err)
	}
}

func TestSchemaFileIsCurrent(t *testing.T) {
	want, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("plan.schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile("plan.schema.json")
	if err != nil || string(have) != string(want) {
		t.Errorf("plan.schema.json is not what Schema() returns (%v): run make generate", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte("version: 1\nname: [a\n"))
	f.Add([]byte("timeline: [{id: a, at: 1s}, null, 3]\nexpect: {}\n"))
	f.Add([]byte("&a [*a, *a]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse("p.yaml", data)
		if (p == nil) == (err == nil) {
			t.Fatalf("plan %v and error %v", p, err)
		}
	})
}
