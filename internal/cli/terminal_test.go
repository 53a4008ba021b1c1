package cli_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

const terminalPlan = `version: 1
name: terminal
seed: 3
target: {kind: reference, with: {shards: 1, replicas: 1}}
load: {script: load.js, min_operations: 1}
timeline:
  - {id: freeze, at: 1s, for: 1s, fault: primary.freeze, on: {shard: s1}, with: {mode: write-stall}}
`

const terminalScript = `import metacache from 'k6/x/metacache';
const fleet = new metacache.Fleet({ clients: 2, warm: true, timeout: '500ms' });
export const options = { scenarios: { a: { executor: 'constant-arrival-rate', rate: 50, duration: '3s', preAllocatedVUs: 40 } } };
export default function () { fleet.write('item-1', 'x'); }
`

// On a terminal a run shows a live view, prints what happens above it, stays
// deaf to keys but not to Ctrl-C, and ends.
func TestLiveViewOnATerminal(t *testing.T) {
	for _, c := range []struct {
		name  string
		press string
		code  int
	}{{"to its end", "", 0}, {"Ctrl-C", "\x03", 105}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for name, text := range map[string]string{"plan.yaml": terminalPlan, "load.js": terminalScript} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command(binary, "run", "plan.yaml", "--out-dir", "run")
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "TERM=xterm-256color", "XDG_STATE_HOME="+filepath.Join(dir, "state"))
			terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 120})
			if err != nil {
				t.Fatal(err)
			}
			defer terminal.Close()
			shown := watch(t, cmd, terminal, func(screen string) bool {
				return c.press != "" && strings.Contains(screen, "freeze (primary.freeze): effective")
			}, c.press)
			for _, text := range []string{"ops/s", "pulls/s", "█", "freeze (primary.freeze): reverted", "terminal (seed 3)"} {
				if !strings.Contains(shown, text) {
					t.Errorf("never showed %q", text)
				}
			}
			if code := cmd.ProcessState.ExitCode(); code != c.code {
				t.Errorf("exit code %d, want %d; showed:\n%s", code, c.code, shown)
			}
		})
	}
}

// watch reads the terminal until the program ends, and presses keys once when
// it is time.
func watch(t *testing.T, cmd *exec.Cmd, terminal io.ReadWriter, ready func(screen string) bool, press string) string {
	t.Helper()
	limit := time.AfterFunc(60*time.Second, func() { _ = cmd.Process.Kill() })
	defer limit.Stop()
	var screen bytes.Buffer
	buffer := make([]byte, 4096)
	pressed := false
	for {
		n, err := terminal.Read(buffer)
		screen.Write(buffer[:n])
		if !pressed && ready(screen.String()) {
			pressed = true
			if _, err := io.WriteString(terminal, press); err != nil {
				t.Error(err)
			}
		}
		if err != nil { // the program has closed its side (EIO on Linux)
			_ = cmd.Wait()
			return screen.String()
		}
	}
}
