package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/metachaos/metachaos/chaos"
)

// stateDir is where the journal lies: $XDG_STATE_HOME/metachaos, or
// ~/.local/state/metachaos (XDG Base Directory Specification).
func stateDir() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "metachaos"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the state folder: %w (set XDG_STATE_HOME)", err)
	}
	return filepath.Join(home, ".local", "state", "metachaos"), nil
}

func openJournal() (*chaos.Journal, error) {
	dir, err := stateDir()
	if err != nil {
		return nil, err
	}
	return chaos.OpenJournal(filepath.Join(dir, "journal"))
}

// runFolder chooses the run folder: outDir itself, or a new one under
// results/runs. An empty outDir that exists is used.
func runFolder(outDir, name string) (string, error) {
	if outDir == "" {
		outDir = filepath.Join("results", "runs", time.Now().UTC().Format("20060102T150405.000Z")+"-"+name)
	}
	outDir, err := filepath.Abs(outDir)
	if err != nil {
		return "", fmt.Errorf("use output folder: %w", err)
	}
	entries, err := os.ReadDir(outDir)
	switch {
	case os.IsNotExist(err):
		return outDir, nil
	case err != nil:
		return "", fmt.Errorf("use output folder: %w", err)
	case len(entries) > 0:
		return "", fmt.Errorf("use output folder %s: it is not empty; name a new one", outDir)
	}
	return outDir, os.Remove(outDir) // the run makes it anew
}

// removeEmptyState removes the state folder unless something is in it, so
// that a run leaves nothing behind.
func removeEmptyState() {
	if dir, err := stateDir(); err == nil {
		_ = os.Remove(dir) // fails as long as anything is in it
	}
}
