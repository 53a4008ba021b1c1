package results

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/metachaos/metachaos/chaos"
	"github.com/metachaos/metachaos/targets"
)

// The files of a run folder beside the manifest and the samples. Findings
// name them as their evidence.
const (
	EventsFile     = "events.ndjson"
	TruthFile      = "truth.ndjson"
	InjectionsFile = "injections.ndjson"
	HostFile       = "host.ndjson"
)

const (
	// sampleQueue and recordQueue bound what waits for the disk: 2 MiB of
	// samples, and about as much of events.
	sampleQueue = 1 << 16
	recordQueue = 1 << 13
	// patience bounds how long a stuck disk holds the load up before records
	// are lost.
	patience = time.Second
)

// Folder is the record of a run while it runs. All methods are safe for
// concurrent use. They hand the record to a goroutine that writes, and wait
// only when its queue is full, and then for a second at most per stall;
// whatever is lost is counted in the manifest. Records handed over after Close
// are dropped.
type Folder struct {
	dir      string
	manifest Manifest

	samples    *stream[Sample]
	events     *stream[targets.Event]
	truth      *stream[targets.Truth]
	injections *stream[chaos.Injection]
	hosts      *stream[Host]
}

var _ Recorder = (*Folder)(nil)

// Create makes the run folder dir, which must not exist, with all its parents,
// writes m as its first manifest, and opens it for records. It sets m's
// Format, Complete and Counts.
func Create(dir string, m Manifest) (*Folder, error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, fmt.Errorf("create run folder: %w", err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create run folder: %w", err)
	}
	m.Format, m.Complete, m.Counts = FormatVersion, false, Counts{}
	if err := writeManifest(dir, m); err != nil {
		return nil, fmt.Errorf("create run folder: %w", err)
	}
	f := &Folder{dir: dir, manifest: m}
	if err := f.openStreams(); err != nil {
		return nil, fmt.Errorf("create run folder: %w", err)
	}
	return f, nil
}

func (f *Folder) openStreams() error {
	path := func(name string) string { return filepath.Join(f.dir, name) }
	samples, errS := newSegmentStore(path(samplesDir))
	events, errE := newLineStore(path(EventsFile), appendEvent)
	truth, errT := newLineStore(path(TruthFile), appendTruth)
	injections, errI := newLineStore(path(InjectionsFile), appendJSON[chaos.Injection])
	hosts, errH := newLineStore(path(HostFile), appendJSON[Host])
	// Every file is open before the first goroutine starts, so that a failure
	// leaves none behind. The run ends with it, and the files with the run.
	if err := errors.Join(errS, errE, errT, errI, errH); err != nil {
		return err
	}
	injections.eager = true
	f.samples = startStream(samples, sampleQueue, patience)
	f.events = startStream(events, recordQueue, patience)
	f.truth = startStream(truth, recordQueue, patience)
	f.injections = startStream(injections, recordQueue, patience)
	f.hosts = startStream(hosts, recordQueue, patience)
	return nil
}

// Dir returns the path of the folder.
func (f *Folder) Dir() string { return f.dir }

// Record stores samples; it copies them.
func (f *Folder) Record(samples ...Sample) { f.samples.box.put(samples...) }

// Event stores one event and takes ownership of its hops.
func (f *Folder) Event(e targets.Event) { f.events.box.put(e) }

// Truth stores one record of the control plane's truth.
func (f *Folder) Truth(t targets.Truth) { f.truth.box.put(t) }

// Injection stores what a step of the timeline did.
func (f *Folder) Injection(i chaos.Injection) { f.injections.box.put(i) }

// Host stores the state of the machine.
func (f *Folder) Host(h Host) { f.hosts.box.put(h) }

// Close writes what is queued and then the final manifest, after finish, if it
// is not nil, has set what is known only at the end of the run. The record is
// complete also when Close returns an error about lost records: the manifest
// counts them. Close is called once.
func (f *Folder) Close(finish func(*Manifest)) error {
	var c Counts
	var errs [5]error
	c.Samples, errs[0] = f.samples.close()
	c.Events, errs[1] = f.events.close()
	c.Truth, errs[2] = f.truth.close()
	c.Injections, errs[3] = f.injections.close()
	c.Hosts, errs[4] = f.hosts.close()
	m := f.manifest
	if finish != nil {
		finish(&m)
	}
	m.Format, m.Complete, m.Counts = FormatVersion, true, c
	if err := errors.Join(append(errs[:], writeManifest(f.dir, m))...); err != nil {
		return fmt.Errorf("close run folder %s: %w", f.dir, err)
	}
	return nil
}
