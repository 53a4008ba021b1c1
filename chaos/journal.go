package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/metachaos/metachaos/targets"
)

// Entry is one thing that must be taken back if its controller dies: either an
// injection or a started target.
type Entry struct {
	// Controller is the process that wrote the entry. While it lives, nobody
	// else acts on the entry.
	Controller targets.Process `json:"controller"`
	// RunDir is the run folder, for people; may be empty.
	RunDir    string   `json:"run_dir,omitempty"`
	Injection *Pending `json:"injection,omitempty"`
	Owned     *Owned   `json:"owned,omitempty"`
}

// Pending is an injection that may be active.
type Pending struct {
	// Phase is written before the controller acts: "started" means that the
	// fault may or may not have been injected by now.
	Phase  Phase  `json:"phase"`
	Handle Handle `json:"handle"`
}

// Owned is what a started target leaves behind when nobody closes it.
type Owned struct {
	ID        string            `json:"id"` // unique within the controller
	Processes []targets.Process `json:"processes,omitempty"`
	// Folder is removed with everything in it. It must hold a file named
	// [OwnedMarker], or be a folder named "metachaos-…" directly in the
	// system's folder for temporary files. Empty: none.
	Folder string `json:"folder,omitempty"`
}

// OwnedMarker is the name of the file that marks a folder as made by a
// target, so that recovery may remove it.
const OwnedMarker = ".metachaos-owned"

// Damaged is a journal file that cannot be read. It was moved aside, to be
// looked at by a person, and is never deleted.
type Damaged struct {
	Path    string // where it was
	MovedTo string // where it is; empty when it could not be moved
	Err     error  // why it cannot be read
}

// Journal keeps entries as small files in one folder, so that a later command
// can recover what a killed controller left. Several processes may use one
// folder. All methods are safe for concurrent use.
type Journal struct {
	dir  string
	self targets.Process
	mu   sync.Mutex // orders making and removing the folder
}

const (
	entrySuffix   = ".json"
	tempPrefix    = ".new-"
	damagedSuffix = ".damaged"
)

// OpenJournal returns the journal in dir. The folder is made with the first
// entry and removed with the last.
func OpenJournal(dir string) (*Journal, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("open journal %s: it is a file; want a folder", dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	self, err := targets.IdentifyProcess(os.Getpid())
	if err != nil {
		return nil, fmt.Errorf("open journal %s: %w", dir, err)
	}
	return &Journal{dir: dir, self: self}, nil
}

// Dir returns the journal's folder.
func (j *Journal) Dir() string { return j.dir }

// Put writes an entry, or replaces the one about the same thing, and returns
// once it would survive a crash of the host. A zero Controller means this
// process.
func (j *Journal) Put(e Entry) error {
	if (e.Injection == nil) == (e.Owned == nil) {
		return errors.New("put journal entry: want either an injection or a started target")
	}
	e = j.signed(e)
	body, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return fmt.Errorf("put journal entry %s: %w", e.name(), err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	// Another process may remove the folder, empty for a moment, between making
	// it and writing into it.
	for range 5 {
		if err = makeDir(j.dir); err != nil {
			break
		}
		if err = writeDurably(j.dir, e.name(), body); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("put journal entry %s: %w", e.name(), err)
	}
	return nil
}

// Remove deletes the entry about the same thing, and the folder when it is
// empty then. Removing what is not there is no error.
func (j *Journal) Remove(e Entry) error {
	e = j.signed(e)
	j.mu.Lock()
	defer j.mu.Unlock()
	err := os.Remove(filepath.Join(j.dir, e.name()))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove journal entry %s: %w", e.name(), err)
	}
	if err := syncDir(j.dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove journal entry %s: %w", e.name(), err)
	}
	_ = os.Remove(j.dir) // fails as long as anything is left in it
	return nil
}

// Entries reads all entries, in the order of their names. Files that cannot
// be read as entries are moved aside and returned as damaged. A missing folder
// has no entries.
func (j *Journal) Entries() ([]Entry, []Damaged, error) {
	files, err := os.ReadDir(j.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read journal: %w", err)
	}
	var entries []Entry
	var damaged []Damaged
	for _, f := range files {
		if strings.HasPrefix(f.Name(), tempPrefix) || filepath.Ext(f.Name()) != entrySuffix {
			continue
		}
		path := filepath.Join(j.dir, f.Name())
		e, err := readEntry(path)
		switch {
		case errors.Is(err, fs.ErrNotExist): // its controller removed it just now
		case err != nil:
			damaged = append(damaged, moveAside(path, err))
		default:
			entries = append(entries, e)
		}
	}
	return entries, damaged, nil
}

func (j *Journal) signed(e Entry) Entry {
	if e.Controller == (targets.Process{}) {
		e.Controller = j.self
	}
	return e
}

// name is the file name of the entry: one per controller and thing.
func (e Entry) name() string {
	kind, id := "target", ""
	if e.Injection != nil {
		kind, id = "injection", e.Injection.Handle.ID
	} else if e.Owned != nil {
		id = e.Owned.ID
	}
	return controllerPrefix(e.Controller) + kind + "-" + fileSafe(id) + entrySuffix
}

func controllerPrefix(p targets.Process) string {
	return fmt.Sprintf("%d-%d-", p.PID, p.Start)
}
