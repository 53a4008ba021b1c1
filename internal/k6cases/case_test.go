package k6cases

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// oneCase is a folder below testdata/cases.
type oneCase struct {
	name string
	want want
}

func readCases(t *testing.T) []oneCase {
	t.Helper()
	entries, err := os.ReadDir("testdata/cases")
	if err != nil {
		t.Fatal(err)
	}
	var all []oneCase
	for _, e := range entries {
		raw, err := os.ReadFile(filepath.Join("testdata/cases", e.Name(), "expect.json"))
		if err != nil {
			t.Fatal(err)
		}
		c := oneCase{name: e.Name()}
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&c.want); err != nil {
			t.Fatalf("%s: expect.json: %v", e.Name(), err)
		}
		all = append(all, c)
	}
	return all
}

// setting is what a run of a case needs from outside.
type setting struct {
	binary string // absolute path
	server string // base URL
	dir    string // of this run
}

func (s setting) subst(text string) string {
	host := strings.TrimPrefix(s.server, "http://")
	port := host[strings.LastIndexByte(host, ':')+1:]
	return strings.NewReplacer("{{BASE_URL}}", s.server, "{{HOST}}", host, "{{PORT}}", port, "{{DIR}}", s.dir).Replace(text)
}

// outcome is what a run did.
type outcome struct {
	code           int
	took           time.Duration
	late           bool
	stdout, stderr string
	export         []byte // the summary export; nil when none was written
}

// command returns the arguments, where the summary export goes, and what is
// fed on standard input.
func (s setting) command() (args []string, export string, stdin []byte) {
	export = filepath.Join(s.dir, "summary.export.json")
	line, _ := os.ReadFile(filepath.Join(s.dir, "args")) // optional
	given := splitArgs(s.subst(string(line)))
	args = []string{"run"}
	exports := false
	for i, a := range given {
		if name, ok := strings.CutPrefix(a, "--summary-export="); ok {
			exports, export = true, filepath.Join(s.dir, name)
		} else if a == "--summary-export" && i+1 < len(given) {
			exports, export = true, filepath.Join(s.dir, given[i+1])
		}
		if a == "<no-export>" { // the name of the export comes from elsewhere
			exports = true
			continue
		}
		args = append(args, a)
	}
	if !exports {
		args = append(args, "--summary-export", export)
	}
	script := "script.js"
	if _, err := os.Stat(filepath.Join(s.dir, "script.ts")); err == nil {
		script = "script.ts"
	}
	stdin, err := os.ReadFile(filepath.Join(s.dir, "stdin"))
	if err == nil {
		script = "-"
	}
	return append(args, script), export, stdin
}

func (s setting) environment() []string {
	env := []string{"HOME=" + s.dir, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + s.dir, "TZ=UTC", "NO_COLOR=1",
		"K6_NO_USAGE_REPORT=true", "K6_AUTO_EXTENSION_RESOLUTION=false", "BASE_URL=" + s.server}
	lines, _ := os.ReadFile(filepath.Join(s.dir, "env")) // optional
	for line := range strings.Lines(string(lines)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			env = append(env, s.subst(line))
		}
	}
	return env
}

// run runs a case in its folder.
func (s setting) run(t *testing.T, w *want) outcome {
	t.Helper()
	args, export, stdin := s.command()
	cmd := exec.Command(s.binary, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = s.dir, s.environment(), 2*time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if stdin != nil {
		cmd.Stdin = bytes.NewReader(stdin)
	}
	limit := w.MaxS
	if limit == 0 {
		limit = 10
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	expired := make(chan struct{})
	timer := time.AfterFunc(time.Duration(limit*slowness*float64(time.Second)), func() {
		close(expired)
		_ = cmd.Process.Kill() // it may have ended just now
	})
	if w.InterruptS > 0 {
		interrupt := time.AfterFunc(time.Duration(w.InterruptS*float64(time.Second)), func() { _ = cmd.Process.Signal(os.Interrupt) })
		defer interrupt.Stop()
	}
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	o := outcome{took: time.Since(began), code: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
	if !timer.Stop() {
		<-expired
		o.late = true
	}
	o.export, _ = os.ReadFile(export) // none is a fact that may be expected
	return o
}

// splitArgs splits one line on spaces; single and double quotes group.
func splitArgs(line string) (out []string) {
	var current strings.Builder
	in, quote := false, rune(0)
	for _, c := range strings.TrimSpace(line) {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			current.WriteRune(c)
		case c == '\'' || c == '"':
			quote, in = c, true
		case c == ' ' || c == '\t' || c == '\n':
			if in {
				out = append(out, current.String())
				current.Reset()
				in = false
			}
		default:
			current.WriteRune(c)
			in = true
		}
	}
	if in {
		out = append(out, current.String())
	}
	return out
}
