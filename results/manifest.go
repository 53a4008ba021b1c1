package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/metachaos/metachaos/targets"
)

// FormatVersion is the version of the run folder that this package writes,
// and the newest that it reads.
const FormatVersion = 1

// ManifestFile is the name of the manifest within a run folder.
const ManifestFile = "manifest.json"

// Manifest says what a run was: everything but its records. [Create] writes
// it once with Complete unset, and [Folder.Close] writes it again; a folder
// whose manifest is not complete holds a run that crashed.
type Manifest struct {
	Format     int       `json:"format"` // set by Create
	Name       string    `json:"name"`
	Plan       string    `json:"plan,omitempty"` // the text of the plan file
	Seed       uint64    `json:"seed"`
	Version    string    `json:"metachaos_version,omitempty"`
	GoVersion  string    `json:"go_version,omitempty"`
	Host       HostFacts `json:"host"`
	BaseWall   time.Time `json:"base_wall"` // wall-clock time of the base instant, for people
	TargetKind string    `json:"target_kind,omitempty"`
	// TargetConfig is the configuration that the target was started with.
	TargetConfig json.RawMessage  `json:"target_config,omitempty"`
	Topology     targets.Topology `json:"topology"`
	// Steps are the ids of the timeline's steps. A step without a record was
	// never injected.
	Steps        []string               `json:"steps,omitempty"`
	Expectations []Expectation          `json:"expectations,omitempty"`
	Thresholds   map[string][]Threshold `json:"thresholds,omitempty"` // by metric, of the script
	// Metrics are all metrics that the script can record, in the order in which
	// they were made, so that a threshold on one without samples can be judged.
	Metrics []Metric `json:"metrics,omitempty"`
	// MinOperations must be done before the first fault starts.
	MinOperations int `json:"min_operations,omitempty"`
	// LoadStart and LoadEnd are the offsets at which the load began and ended.
	// LoadEnd is 0 while the load has not ended.
	LoadStart time.Duration `json:"load_start"`
	LoadEnd   time.Duration `json:"load_end"`
	// Interrupted marks a run that was stopped before its plan was through,
	// and Reason says by what.
	Interrupted bool       `json:"interrupted,omitempty"`
	Reason      string     `json:"reason,omitempty"`
	Script      ScriptExit `json:"script"`
	// Complete is set by Close.
	Complete bool `json:"complete"`
	// Counts of records, set by Close.
	Counts Counts `json:"counts"`
}

// HostFacts describe the machine that a run was conducted from.
type HostFacts struct {
	OS          string `json:"os,omitempty"`
	Kernel      string `json:"kernel,omitempty"`
	Arch        string `json:"arch,omitempty"`
	CPU         string `json:"cpu,omitempty"`
	CPUs        int    `json:"cpus,omitempty"`
	MemoryBytes uint64 `json:"memory_bytes,omitempty"`
}

// Expectation is one condition of a plan, as its author wrote it.
type Expectation struct {
	Metric string `json:"metric"`
	Window string `json:"window"`
	Is     string `json:"is"`
}

// Threshold is one condition of a script on its own metrics.
type Threshold struct {
	Expression  string `json:"expression"`
	AbortOnFail bool   `json:"abort_on_fail,omitempty"`
}

// ScriptExit says how the script ended.
type ScriptExit struct {
	CompletedIterations uint64 `json:"completed_iterations"` // failed ones included
	FailedIterations    uint64 `json:"failed_iterations"`
	ExitCode            int    `json:"exit_code"`
	Error               string `json:"error,omitempty"`
}

// Count says what became of the records of one stream.
type Count struct {
	Written uint64 `json:"written"`
	Lost    uint64 `json:"lost"` // handed over but never written
}

// Counts are the counts of every stream of a run folder.
type Counts struct {
	Samples    Count `json:"samples"`
	Events     Count `json:"events"`
	Truth      Count `json:"truth"`
	Injections Count `json:"injections"`
	Hosts      Count `json:"hosts"`
}

// Lost returns the number of records lost over all streams.
func (c Counts) Lost() uint64 {
	return c.Samples.Lost + c.Events.Lost + c.Truth.Lost + c.Injections.Lost + c.Hosts.Lost
}

// writeManifest replaces the manifest of dir in one step, so that a reader
// and a crash see the old one or the new one.
func writeManifest(dir string, m Manifest) error {
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("encode manifest: %w", err)
	}
	path := filepath.Join(dir, ManifestFile)
	if err := writeFileAtomic(path, append(b, '\n')); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	return nil
}

func writeFileAtomic(path string, content []byte) error {
	temporary := path + ".tmp"
	f, err := os.Create(temporary)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	return nil
}

func readManifest(dir string) (Manifest, error) {
	path := filepath.Join(dir, ManifestFile)
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Manifest{}, fmt.Errorf("open run folder %s: it has no %s, so it is no run folder: name the folder that metachaos run printed", dir, ManifestFile)
	case err != nil:
		return Manifest{}, fmt.Errorf("open run folder: %w", err)
	}
	var m Manifest
	if err := json.Unmarshal(b, &m); err != nil {
		return Manifest{}, fmt.Errorf("open run folder: %s is no valid manifest: %w", path, err)
	}
	if m.Format < 1 || m.Format > FormatVersion {
		return Manifest{}, fmt.Errorf("open run folder: %s has format %d, but this version reads formats 1 to %d", path, m.Format, FormatVersion)
	}
	return m, nil
}
