package results

import (
	"fmt"
	"iter"
	"path/filepath"

	"github.com/metachaos/metachaos/chaos"
	"github.com/metachaos/metachaos/targets"
)

// Run is a run folder that is read. It is used by one goroutine at a time.
// The iterators read the files anew each time, in the order of writing, which
// is near to the order of offsets but not the same. They skip what is damaged
// and count it; an error that they yield is one of reading the disk, and
// their last pair.
type Run struct {
	dir      string
	manifest Manifest
	registry *Registry
	damage   Damage
}

// Damage counts what could not be read: lines, and for samples also whole
// segments. Each count is that of the last complete pass over the stream, and
// 0 before the first.
type Damage struct {
	Samples    uint64 `json:"samples"`
	Events     uint64 `json:"events"`
	Truth      uint64 `json:"truth"`
	Injections uint64 `json:"injections"`
	Hosts      uint64 `json:"hosts"`
}

// Total returns the sum over all streams.
func (d Damage) Total() uint64 {
	return d.Samples + d.Events + d.Truth + d.Injections + d.Hosts
}

// Open opens a run folder. A run that crashed opens too: its manifest is not
// Complete.
func Open(dir string) (*Run, error) {
	m, err := readManifest(dir)
	if err != nil {
		return nil, err
	}
	reg := NewRegistry()
	for _, metric := range m.Metrics {
		if _, err := reg.Metric(metric.Name, metric.Kind, metric.Contains); err != nil {
			return nil, fmt.Errorf("open run folder: %s: %w", filepath.Join(dir, ManifestFile), err)
		}
	}
	if _, _, _, err := readDictionary(filepath.Join(dir, samplesDir), reg); err != nil {
		return nil, fmt.Errorf("open run folder: %w", err)
	}
	return &Run{dir: dir, manifest: m, registry: reg}, nil
}

// Dir returns the path of the folder.
func (r *Run) Dir() string { return r.dir }

// Manifest returns what the run was.
func (r *Run) Manifest() Manifest { return r.manifest }

// Registry holds the metrics of the manifest and of the samples.
func (r *Run) Registry() *Registry { return r.registry }

// Damage returns what could not be read so far.
func (r *Run) Damage() Damage { return r.damage }

// EventLines yields the events with their place in [EventsFile].
func (r *Run) EventLines() iter.Seq2[Line[targets.Event], error] {
	valid := func(e targets.Event) bool { return e.Verb != "" && e.Outcome != "" && e.Start <= e.End }
	return readStream(r, EventsFile, valid, &r.damage.Events)
}

// TruthLines yields the truth with its place in [TruthFile].
func (r *Run) TruthLines() iter.Seq2[Line[targets.Truth], error] {
	valid := func(t targets.Truth) bool { return t.Kind != "" }
	return readStream(r, TruthFile, valid, &r.damage.Truth)
}

// InjectionLines yields the injections with their place in [InjectionsFile].
func (r *Run) InjectionLines() iter.Seq2[Line[chaos.Injection], error] {
	valid := func(i chaos.Injection) bool { return i.ID != "" && i.Phase != "" }
	return readStream(r, InjectionsFile, valid, &r.damage.Injections)
}

// HostLines yields the states of the machine with their place in [HostFile].
func (r *Run) HostLines() iter.Seq2[Line[Host], error] {
	valid := func(h Host) bool { return h.At != 0 || h.MemoryBytes != 0 }
	return readStream(r, HostFile, valid, &r.damage.Hosts)
}

// Events yields the events.
func (r *Run) Events() iter.Seq2[targets.Event, error] { return records(r.EventLines()) }

// Truth yields the truth.
func (r *Run) Truth() iter.Seq2[targets.Truth, error] { return records(r.TruthLines()) }

// Injections yields the injections.
func (r *Run) Injections() iter.Seq2[chaos.Injection, error] { return records(r.InjectionLines()) }

// Hosts yields the states of the machine.
func (r *Run) Hosts() iter.Seq2[Host, error] { return records(r.HostLines()) }

func readStream[T any](r *Run, name string, valid func(T) bool, damage *uint64) iter.Seq2[Line[T], error] {
	return func(yield func(Line[T], error) bool) {
		var found uint64
		for line, err := range readLines(filepath.Join(r.dir, name), valid, &found) {
			if !yield(line, err) {
				return // the rest of the file was not seen
			}
		}
		*damage = found
	}
}

func records[T any](lines iter.Seq2[Line[T], error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for line, err := range lines {
			if !yield(line.Record, err) {
				return
			}
		}
	}
}
