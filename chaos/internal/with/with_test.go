package with

import (
	"strings"
	"testing"
	"time"
)

type config struct {
	Mode  string        `yaml:"mode"`
	Share float64       `yaml:"share"`
	Count uint64        `yaml:"count"`
	In    time.Duration `yaml:"in"`
	Names []string      `yaml:"names"`
}

func TestTextRoundTrips(t *testing.T) {
	for _, text := range []string{"", "{}", "mode: stop\nshare: 0.25\ncount: 18446744073709551615\nin: 1m30s\nnames: [a, 'b: c']\n",
		`{"mode": "2", "share": 1, "names": ["yes", "1"]}`} {
		var want, got config
		if err := Strict([]byte(text))(&want); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		again, err := Text(Strict([]byte(text)))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if err := Strict(again)(&got); err != nil {
			t.Fatalf("%q became %q: %v", text, again, err)
		}
		if strings.Join(got.Names, "|") != strings.Join(want.Names, "|") || got.Mode != want.Mode ||
			got.Share != want.Share || got.Count != want.Count || got.In != want.In {
			t.Errorf("%q became %+v, want %+v", text, got, want)
		}
	}
	if text, err := Text(nil); text != nil || err != nil {
		t.Errorf("nil gave %q, %v", text, err)
	}
}

func TestStrictRefusesWithPosition(t *testing.T) {
	for _, text := range []string{"mode: stop\nshaer: 1\n", "mode: stop\nshare: lots\n", "in: 3 parsecs", "[1", "- 1"} {
		err := Strict([]byte(text))(&config{})
		if err == nil || !strings.HasPrefix(err.Error(), "with:") {
			t.Errorf("%q gave %v", text, err)
		}
	}
	if err := Strict([]byte("mode: stop\nshaer: 1\n"))(&config{}); err == nil || !strings.Contains(err.Error(), "with:2:1:") {
		t.Errorf("the position is wrong: %v", err)
	}
}

func TestStrictKeepsDefaults(t *testing.T) {
	for _, text := range []string{"", "  \n", "# only a comment\n", "{}", "null", "~", "---\n", "share: 1"} {
		c := config{Mode: "stop", Count: 7}
		if err := Strict([]byte(text))(&c); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if c.Mode != "stop" || c.Count != 7 {
			t.Errorf("%q wiped the defaults: %+v", text, c)
		}
	}
}
