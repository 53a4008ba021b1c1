package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/metachaos/metachaos/targets"
)

// writeDurably makes dir/name hold body, whole or not at all, also when the
// host crashes.
func writeDurably(dir, name string, body []byte) error {
	temp := filepath.Join(dir, tempPrefix+name)
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(body)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(temp, filepath.Join(dir, name))
	}
	if err != nil {
		_ = os.Remove(temp)
		return err
	}
	return syncDir(dir)
}

// makeDir makes dir durably when it is missing.
func makeDir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return syncDir(filepath.Dir(dir))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func readEntry(path string) (Entry, error) {
	body, err := os.ReadFile(path)
	if err != nil {
		return Entry{}, err
	}
	var e Entry
	if err := json.Unmarshal(body, &e); err != nil {
		return Entry{}, fmt.Errorf("parse journal entry: %w", err)
	}
	if e.Controller.PID == 0 || (e.Injection == nil) == (e.Owned == nil) {
		return Entry{}, errors.New("parse journal entry: want a controller, and either an injection or a started target")
	}
	if want := e.name(); want != filepath.Base(path) {
		return Entry{}, fmt.Errorf("parse journal entry: by its content it is %s", want)
	}
	return e, nil
}

func moveAside(path string, why error) Damaged {
	d := Damaged{Path: path, Err: why}
	for n := range 1000 {
		to := fmt.Sprintf("%s%s-%d", path, damagedSuffix, n)
		// A link, not a rename, since it refuses to replace what is there.
		if err := os.Link(path, to); errors.Is(err, fs.ErrExist) {
			continue
		} else if err != nil || os.Remove(path) != nil {
			return d
		}
		d.MovedTo = to
		return d
	}
	return d
}

// sweepTemps removes what dead controllers left half-written. Nothing was
// touched on the strength of such a file, since acting waits for the whole one.
func (j *Journal) sweepTemps() {
	files, _ := filepath.Glob(filepath.Join(j.dir, tempPrefix+"*"))
	for _, path := range files {
		var writer targets.Process
		name := strings.TrimPrefix(filepath.Base(path), tempPrefix)
		if _, err := fmt.Sscanf(name, "%d-%d-", &writer.PID, &writer.Start); err != nil {
			continue
		}
		writer.Boot = j.self.Boot
		if !writer.Alive() {
			_ = os.Remove(path)
		}
	}
	_ = os.Remove(j.dir) // fails unless it is empty
}

// fileSafe keeps letters, digits, dots and dashes, and writes any other byte
// as _ and two hexadecimal digits, so that different ids stay different.
func fileSafe(id string) string {
	var b strings.Builder
	for _, c := range []byte(id) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '.':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "_%02x", c)
		}
	}
	return b.String()
}
