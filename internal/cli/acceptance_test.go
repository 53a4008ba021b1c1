package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/metachaos/metachaos/targets"
)

// binary is the program under test, built once. It is the real one: the tests
// start processes, send signals and read exit codes as users do.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "metachaos-acceptance-")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "metachaos")
	if out, err := exec.Command("go", "build", "-o", binary, "../../cmd/metachaos").CombinedOutput(); err != nil {
		panic(fmt.Sprintf("build metachaos: %v\n%s", err, out))
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// TestScripts runs the manuals under testdata/script.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", filepath.Dir(binary)+string(os.PathListSeparator)+os.Getenv("PATH"))
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, "state"))
			e.Setenv("TMPDIR", filepath.Join(e.WorkDir, "tmp"))
			e.Setenv("METACHAOS", binary)
			return os.Mkdir(filepath.Join(e.WorkDir, "tmp"), 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "nothing-left": nothingLeft},
	})
}

// exits CODE COMMAND… runs a command and checks its exit code. Its output is
// there for stdout and stderr afterwards.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit, ok := err.(*exec.ExitError); ok { //nolint:errorlint // Exec returns it bare
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("run %s: %v", args[1], err)
	}
	if got != want {
		ts.Fatalf("%s: exit code %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

// nothing-left checks that no temporary folder and no state is there.
func nothingLeft(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: nothing-left")
	}
	for _, dir := range []string{ts.Getenv("TMPDIR"), filepath.Join(ts.Getenv("XDG_STATE_HOME"), "metachaos")} {
		entries, err := os.ReadDir(dir)
		if err != nil && !os.IsNotExist(err) {
			ts.Fatalf("%v", err)
		}
		for _, e := range entries {
			ts.Fatalf("left behind: %s", filepath.Join(dir, e.Name()))
		}
	}
}

// experiment is a running metachaos whose output can be waited for.
type experiment struct {
	t           *testing.T
	cmd         *exec.Cmd
	work        string
	stdout      bytes.Buffer
	stderr      string // path
	environment []string
	exited      chan struct{}
}

func start(t *testing.T, args ...string) *experiment {
	t.Helper()
	x := &experiment{t: t, work: t.TempDir(), exited: make(chan struct{})}
	x.stderr = filepath.Join(x.work, "stderr")
	tmp := filepath.Join(x.work, "tmp")
	if err := os.Mkdir(tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(x.stderr)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	x.environment = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(x.work, "state"), "TMPDIR="+tmp)
	x.cmd = exec.Command(binary, args...)
	x.cmd.Dir, x.cmd.Env, x.cmd.Stdout, x.cmd.Stderr = x.work, x.environment, &x.stdout, log
	if err := x.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = x.cmd.Wait()
		close(x.exited)
	}()
	t.Cleanup(func() {
		_ = x.cmd.Process.Kill()
		<-x.exited
	})
	return x
}

func (x *experiment) said() string {
	b, err := os.ReadFile(x.stderr)
	if err != nil {
		x.t.Fatal(err)
	}
	return string(b)
}

// await waits until standard error holds text.
func (x *experiment) await(text string) {
	x.t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !strings.Contains(x.said(), text); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			x.t.Fatalf("never said %q, but:\n%s", text, x.said())
		}
	}
}

func (x *experiment) exitCode() int {
	x.t.Helper()
	select {
	case <-x.exited:
		return x.cmd.ProcessState.ExitCode()
	case <-time.After(60 * time.Second):
		x.t.Fatalf("did not end; said:\n%s", x.said())
		return -1
	}
}

// again runs another metachaos in the same place.
func (x *experiment) again(args ...string) (string, int) {
	x.t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Dir, cmd.Env = x.work, x.environment
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		x.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// frozen returns the identity of the process that the run says it has stopped.
func (x *experiment) frozen() targets.Process {
	x.t.Helper()
	x.await("freeze (primary.freeze): effective")
	_, rest, ok := strings.Cut(x.said(), "freeze (primary.freeze): planned; pid ")
	if !ok {
		x.t.Fatalf("the plan of the freeze is not told:\n%s", x.said())
	}
	pid, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		x.t.Fatal(err)
	}
	p, err := targets.IdentifyProcess(pid)
	if err != nil {
		x.t.Fatal(err)
	}
	if p.State() != 'T' {
		x.t.Fatalf("process %d is in state %c, want T", pid, p.State())
	}
	return p
}

// nothingLeft checks journal, folders, and that the process is gone.
func (x *experiment) nothingLeft(p targets.Process) {
	x.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); p.Alive(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			x.t.Fatalf("process %d is still there, in state %c", p.PID, p.State())
		}
	}
	for _, dir := range []string{"tmp", "state/metachaos"} {
		entries, err := os.ReadDir(filepath.Join(x.work, dir))
		if err != nil && !os.IsNotExist(err) {
			x.t.Fatal(err)
		}
		for _, e := range entries {
			x.t.Errorf("left behind: %s/%s", dir, e.Name())
		}
	}
}

func TestInterruptThawsAndJudges(t *testing.T) {
	t.Parallel()
	x := start(t, "run", "frozen-primary", "--out-dir", "run")
	p := x.frozen()
	if err := x.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := x.exitCode(); code != 105 {
		t.Errorf("exit code %d, want 105", code)
	}
	if said := x.said(); !strings.Contains(said, "freeze (primary.freeze): reverted") {
		t.Errorf("the revert is not told:\n%s", said)
	}
	if out := x.stdout.String(); !strings.Contains(out, "INCONCLUSIVE  frozen-primary") || !strings.Contains(out, "staleness.rate") {
		t.Errorf("no verdict of what was measured:\n%s", out)
	}
	x.nothingLeft(p)
	if out, code := x.again("doctor"); code != 0 || !strings.Contains(out, "journal: empty") {
		t.Errorf("doctor: exit code %d, said:\n%s", code, out)
	}
}

func TestKilledRunIsTakenBack(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		say  string
		code int
	}{
		{"by doctor", []string{"doctor"}, "journal: found what a killed run left", 0},
		{"by the next run", []string{"run", "next.js", "-q"}, "found what a killed run left: injection freeze (primary.freeze): reverted", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x := start(t, "run", "frozen-primary", "--out-dir", "run")
			p := x.frozen()
			if err := x.cmd.Process.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			x.exitCode()
			if err := os.WriteFile(filepath.Join(x.work, "next.js"), []byte("export default function () {}"), 0o600); err != nil {
				t.Fatal(err)
			}
			out, code := x.again(c.args...)
			if code != c.code || !strings.Contains(out, c.say) || !strings.Contains(out, "injection freeze (primary.freeze): reverted") {
				t.Errorf("exit code %d, said:\n%s", code, out)
			}
			x.nothingLeft(p)
			out, code = x.again("analyze", "run")
			if code != 120 || !strings.Contains(out, "the run crashed") {
				t.Errorf("analyze of the killed run: exit code %d, said:\n%s", code, out)
			}
		})
	}
}

// TestQuickstart is the main demonstration, with and without protections. The
// two runs follow each other: they measure.
func TestQuickstart(t *testing.T) {
	for _, c := range []struct {
		plan   string
		code   int
		failed []string
		passed []string
	}{
		{plan: "quickstart", code: 0,
			passed: []string{"staleness.rate", "safety.stale_owner_writes", "duplicates.rate", "duplicates.missing_rate",
				"herd.factor_100ms", "redirects.loops", "availability.goodput"}},
		{plan: "quickstart-unprotected", code: 99,
			failed: []string{"staleness.rate", "duplicates.rate", "herd.factor_100ms"}},
	} {
		t.Run(c.plan, func(t *testing.T) {
			x := start(t, "run", c.plan, "--out-dir", "run")
			if code := x.exitCode(); code != c.code {
				t.Errorf("exit code %d, want %d; said:\n%s%s", code, c.code, x.said(), x.stdout.String())
			}
			checkVerdict(t, filepath.Join(x.work, "run"), c.passed, c.failed)
			before, err := os.ReadFile(filepath.Join(x.work, "run", "verdict.json"))
			if err != nil {
				t.Fatal(err)
			}
			text, code := x.again("analyze", "run")
			if code != c.code {
				t.Errorf("analyze: exit code %d, want %d", code, c.code)
			}
			if table := verdictOf(x.stdout.String()); table == "" || table != verdictOf(text) {
				t.Errorf("analyze says\n%s\nbut run said\n%s", verdictOf(text), table)
			}
			after, err := os.ReadFile(filepath.Join(x.work, "run", "verdict.json"))
			if err != nil || !bytes.Equal(before, after) {
				t.Errorf("verdict.json differs after analyze (%v)", err)
			}
			if entries, _ := os.ReadDir(filepath.Join(x.work, "tmp")); len(entries) > 0 {
				t.Errorf("left behind: %v", entries)
			}
		})
	}
}

// verdictOf cuts the verdict out of what run printed, without the last line,
// which is the path of the folder as it was named.
func verdictOf(out string) string {
	for _, word := range []string{"PASS  ", "FAIL  ", "INCONCLUSIVE  "} {
		if i := strings.Index(out, word); i >= 0 {
			text, _, _ := strings.Cut(out[i:], "\nRecord: ")
			return text
		}
	}
	return ""
}
