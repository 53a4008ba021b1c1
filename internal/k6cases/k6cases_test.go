package k6cases

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

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
				c.check(t, s)
			})
		}
	})
	t.Run("alone", func(t *testing.T) {
		for _, c := range cases {
			if c.want.timed() {
				t.Run(c.name, func(t *testing.T) { c.check(t, s) })
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
	args := append([]string{"build", "-o", binary}, buildFlags...)
	out, err := exec.Command("go", append(args, "../../cmd/metachaos")...).CombinedOutput()
	if err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	return binary
}

// check runs a case in a fresh copy of its folder.
func (c oneCase) check(t *testing.T, s setting) {
	s.dir = filepath.Join(t.TempDir(), c.name)
	if err := os.CopyFS(s.dir, os.DirFS(filepath.Join("testdata/cases", c.name))); err != nil {
		t.Fatal(err)
	}
	o := s.run(t, &c.want)
	if diffs := judge(&c.want, o, s); len(diffs) > 0 {
		t.Errorf("%s: %s\n- %s\n--- stdout\n%s--- stderr\n%s", c.want.Area, c.want.Desc, strings.Join(diffs, "\n- "), o.stdout, o.stderr)
	}
}
