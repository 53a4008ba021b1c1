package chaos

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/metachaos/metachaos/targets"
)

// sleeper starts a process that the test may signal.
func sleeper(t *testing.T) (targets.Process, *exec.Cmd) {
	t.Helper()
	cmd := exec.Command("sleep", "3600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	p, err := targets.IdentifyProcess(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return p, cmd
}

// dead returns the identity of a process that is gone.
func dead(t *testing.T) targets.Process {
	t.Helper()
	p, cmd := sleeper(t)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return p
}

func journalIn(t *testing.T) *Journal {
	t.Helper()
	j, err := OpenJournal(filepath.Join(t.TempDir(), "a", "journal"))
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func put(t *testing.T, j *Journal, e Entry) {
	t.Helper()
	if err := j.Put(e); err != nil {
		t.Fatal(err)
	}
}

func injectionOf(controller targets.Process, id string) Entry {
	return Entry{Controller: controller, Injection: &Pending{Phase: PhaseStarted,
		Handle: Handle{ID: id, Fault: "shake", Touches: []string{"toy " + id}}}}
}

func gone(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there (%v)", path, err)
	}
}

func TestJournalRoundTrip(t *testing.T) {
	j := journalIn(t)
	gone(t, j.Dir()) // opening alone makes nothing
	for _, id := range []string{"a", "a/b", "../up", "a"} {
		e := injectionOf(targets.Process{}, id)
		e.Injection.Handle.Lease = time.Minute
		put(t, j, e)
	}
	entries, damaged, err := j.Entries()
	if err != nil || len(damaged) > 0 || len(entries) != 3 {
		t.Fatalf("got %d entries, %v, %v; want 3", len(entries), damaged, err)
	}
	for _, e := range entries {
		if !e.Controller.Alive() || e.Controller.PID != os.Getpid() || e.Injection.Handle.Lease != time.Minute {
			t.Errorf("entry %+v", e)
		}
		if err := j.Remove(e); err != nil {
			t.Error(err)
		}
		if err := j.Remove(e); err != nil {
			t.Errorf("removing twice: %v", err)
		}
	}
	gone(t, j.Dir())
	put(t, j, injectionOf(targets.Process{}, "again")) // the folder comes back
	if err := j.Put(Entry{}); err == nil {
		t.Error("an empty entry was accepted")
	}
}

func TestJournalRefusesAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenJournal(path); err == nil || !strings.Contains(err.Error(), "want a folder") {
		t.Errorf("error: %v", err)
	}
}

func TestRecoverMovesDamagedFilesAside(t *testing.T) {
	j := journalIn(t)
	put(t, j, injectionOf(dead(t), "whole"))
	name := filepath.Join(j.Dir(), "77-1-injection-torn.json")
	if err := os.WriteFile(name, []byte(`{"controller": {"pid"`), 0o600); err != nil {
		t.Fatal(err)
	}
	temp := filepath.Join(j.Dir(), tempPrefix+"2147483647-1-injection-x.json")
	if err := os.WriteFile(temp, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out := Recover(t.Context(), j, map[string]Fault{"shake": &fakeFault{}})
	if len(out) != 2 || !out[0].Clean() || out[1].Clean() {
		t.Fatalf("recoveries: %v", out)
	}
	kept, err := os.ReadFile(name + damagedSuffix + "-0")
	if err != nil || !strings.Contains(string(kept), "controller") {
		t.Errorf("moved aside: %q, %v", kept, err)
	}
	if !strings.Contains(out[1].String(), damagedSuffix) {
		t.Errorf("the report does not say where it is: %s", out[1])
	}
	gone(t, name)
	gone(t, temp)
	if again := Recover(t.Context(), j, nil); len(again) != 0 {
		t.Errorf("second recovery: %v", again)
	}
}

func TestRecoverInjections(t *testing.T) {
	living, _ := sleeper(t)
	stuck := &fakeFault{reversals: []Reversal{{Undone: NotReverted, Evidence: "still shakes"}}}
	deaf := &fakeFault{revertIgnores: true, revertTakes: 3 * time.Second}
	shake := &fakeFault{}
	faults := map[string]Fault{"shake": shake, "stuck": stuck, "deaf": deaf}
	j := journalIn(t)
	crashed := dead(t)
	put(t, j, injectionOf(crashed, "clean"))
	put(t, j, injectionOf(living, "theirs"))
	for _, fault := range []string{"stuck", "deaf", "shaek"} {
		e := injectionOf(crashed, fault)
		e.Injection.Handle.Fault = fault
		put(t, j, e)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	got := map[string]Recovery{}
	for _, r := range Recover(ctx, j, faults) {
		got[r.Entry.Injection.Handle.ID] = r
	}
	if len(got) != 4 || !got["clean"].Clean() {
		t.Errorf("recoveries: %v", got)
	}
	for id, wants := range map[string]string{
		"stuck": "not-reverted: still shakes", "deaf": "has not returned", "shaek": `did you mean "shake"?`} {
		if line := got[id].String(); got[id].Clean() || !strings.Contains(line, wants) || !strings.Contains(line, "toy "+id) {
			t.Errorf("%s: %s", id, line)
		}
	}
	entries, _, err := j.Entries()
	if err != nil || len(entries) != 4 { // what is not clean, and what is not ours
		t.Errorf("%d entries left, %v", len(entries), err)
	}
}

func TestRecoverOwned(t *testing.T) {
	crashed := dead(t)
	marked := filepath.Join(t.TempDir(), "data")
	if err := os.MkdirAll(filepath.Join(marked, "deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(marked, OwnedMarker), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	foreign := t.TempDir()
	left, _ := sleeper(t)
	reused, _ := sleeper(t)
	reused.Start++ // a stranger that has the pid by now
	j := journalIn(t)
	put(t, j, Entry{Controller: crashed, Owned: &Owned{ID: "ours", Folder: marked, Processes: []targets.Process{left, reused}}})
	put(t, j, Entry{Controller: crashed, Owned: &Owned{ID: "theirs", Folder: foreign}})
	put(t, j, Entry{Controller: crashed, Owned: &Owned{ID: "void", Folder: filepath.Join(foreign, "none"), Processes: []targets.Process{crashed}}})

	out := recovery{journal: j, grace: 300 * time.Millisecond}.run(t.Context())
	got := map[string]Recovery{}
	for _, r := range out {
		got[r.Entry.Owned.ID] = r
	}
	if !got["ours"].Clean() || !got["void"].Clean() || got["theirs"].Clean() {
		t.Errorf("recoveries: %v", out)
	}
	if !strings.Contains(got["theirs"].String(), "no mark of ours") {
		t.Errorf("report: %s", got["theirs"])
	}
	gone(t, marked)
	if left.Alive() {
		t.Error("the process that was left is alive")
	}
	reused.Start--
	if !reused.Alive() {
		t.Error("a stranger was killed")
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Error("a folder without a mark was removed")
	}
}

func TestSignalSparesWhatIsNotMeant(t *testing.T) {
	p, _ := sleeper(t)
	self, err := targets.IdentifyProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	parent, err := targets.IdentifyProcess(os.Getppid())
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []targets.Process{self, parent, {PID: 1, Start: p.Start, Boot: p.Boot}, {PID: -p.PID}, {}} {
		if Touchable(q) == nil {
			t.Errorf("process %d counts as touchable", q.PID)
		}
	}
	other := p
	other.Start++
	if err := Signal(other, syscall.SIGKILL); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("a reused pid gave %v", err)
	}
	if !p.Alive() {
		t.Fatal("the reused pid was signalled")
	}
	if err := Signal(p, syscall.SIGSTOP); err != nil {
		t.Error(err)
	}
}
