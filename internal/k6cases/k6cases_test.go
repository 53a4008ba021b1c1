package k6cases

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// slowness multiplies time limits: the machine may be shared.
const slowness = 2.0

// timedTries is how often a case that counts what happens in a span of time may
// be tried: a machine that stands still in the middle of it proves nothing.
const timedTries = 3

// TestCases runs all cases: those that look at the clock alone, the others two
// at a time.
func TestCases(t *testing.T) {
	cases := readCases(t)
	if len(cases) < 200 {
		t.Fatalf("only %d cases were found", len(cases))
	}
	s := setting{binary: build(t), server: startServer(t)}
	two := make(chan struct{}, 2)
	t.Run("side by side", func(t *testing.T) {
		for _, c := range cases {
			if c.want.timed() {
				continue
			}
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				two <- struct{}{}
				defer func() { <-two }()
				c.check(t, s, 1)
			})
		}
	})
	t.Run("alone", func(t *testing.T) {
		for _, c := range cases {
			if c.want.timed() {
				t.Run(c.name, func(t *testing.T) { c.check(t, s, timedTries) })
			}
		}
	})
}

// build builds the program; K6CASES_BINARY names one to test in its place.
func build(t *testing.T) string {
	t.Helper()
	if binary := os.Getenv("K6CASES_BINARY"); binary != "" {
		return binary
	}
	binary := filepath.Join(t.TempDir(), "metachaos")
	out, err := exec.Command("go", "build", "-o", binary, "../../cmd/metachaos").CombinedOutput()
	if err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	return binary
}

// check runs a case until it passes, so many times at most.
func (c oneCase) check(t *testing.T, s setting, tries int) {
	t.Helper()
	for ; ; tries-- {
		diffs, o := c.try(t, s)
		if len(diffs) == 0 {
			return
		}
		if tries <= 1 {
			t.Fatalf("%s: %s\n- %s\n--- stdout\n%s--- stderr\n%s", c.want.Area, c.want.Desc, strings.Join(diffs, "\n- "), o.stdout, o.stderr)
		}
		t.Logf("tried again: %s", strings.Join(diffs, "; "))
	}
}

// try runs a case in a fresh copy of its folder.
func (c oneCase) try(t *testing.T, s setting) (diffs []string, o outcome) {
	t.Helper()
	s.dir = filepath.Join(t.TempDir(), c.name)
	if err := os.CopyFS(s.dir, os.DirFS(filepath.Join("testdata/cases", c.name))); err != nil {
		t.Fatal(err)
	}
	o = s.run(t, &c.want)
	return judge(&c.want, o, s), o
}
