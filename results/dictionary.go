package results

import (
	"errors"
	"path/filepath"
	"time"
)

// The samples of a run folder name their metric and their tag set by number.
// Two files beside them say what the numbers stand for; both grow in front of
// the segments that use them, so that a segment can always be read.
const (
	samplesDir  = "samples"
	metricsFile = "metrics.ndjson"
	tagsFile    = "tags.ndjson"
)

type metricEntry struct {
	ID       int32      `json:"id"`
	Name     string     `json:"name"`
	Kind     MetricKind `json:"type"`
	Contains Contains   `json:"contains"`
}

type tagsEntry struct {
	ID   int32             `json:"id"` // from 1; 0 is the empty set
	Tags map[string]string `json:"tags"`
}

// dictionary numbers metrics and tag sets in the order in which they appear.
type dictionary struct {
	metrics    map[*Metric]int32
	tags       map[*Tags]int32
	metricFile *lineStore[metricEntry]
	tagFile    *lineStore[tagsEntry]
}

func newDictionary(dir string) (*dictionary, error) {
	m, err := newLineStore(filepath.Join(dir, metricsFile), appendJSON[metricEntry])
	if err != nil {
		return nil, err
	}
	t, err := newLineStore(filepath.Join(dir, tagsFile), appendJSON[tagsEntry])
	if err != nil {
		return nil, errors.Join(err, m.file.Close())
	}
	return &dictionary{
		metrics: map[*Metric]int32{}, tags: map[*Tags]int32{nil: 0},
		metricFile: m, tagFile: t,
	}, nil
}

func (d *dictionary) metric(m *Metric) int32 {
	id, ok := d.metrics[m]
	if !ok {
		id = int32(len(d.metrics))
		d.metrics[m] = id
		d.metricFile.write([]metricEntry{{ID: id, Name: m.Name, Kind: m.Kind, Contains: m.Contains}})
	}
	return id
}

func (d *dictionary) tagSet(t *Tags) int32 {
	id, ok := d.tags[t]
	if !ok {
		id = int32(len(d.tags))
		d.tags[t] = id
		d.tagFile.write([]tagsEntry{{ID: id, Tags: t.Map()}})
	}
	return id
}

func (d *dictionary) flush() {
	d.metricFile.flush(time.Time{})
	d.tagFile.flush(time.Time{})
}

func (d *dictionary) close() error {
	_, errM := d.metricFile.close()
	_, errT := d.tagFile.close()
	return errors.Join(errM, errT)
}

// readDictionary returns what the numbers stand for, as pointers of reg, and
// the number of damaged lines.
func readDictionary(dir string, reg *Registry) (map[int32]*Metric, map[int32]*Tags, uint64, error) {
	var damage uint64
	metrics := map[int32]*Metric{}
	named := func(e metricEntry) bool { return e.Name != "" }
	for line, err := range readLines(filepath.Join(dir, metricsFile), named, &damage) {
		if err != nil {
			return nil, nil, 0, err
		}
		m, err := reg.Metric(line.Record.Name, line.Record.Kind, line.Record.Contains)
		if err != nil {
			damage++
			continue
		}
		metrics[line.Record.ID] = m
	}
	tags := map[int32]*Tags{0: nil}
	numbered := func(e tagsEntry) bool { return e.ID > 0 && e.Tags != nil }
	for line, err := range readLines(filepath.Join(dir, tagsFile), numbered, &damage) {
		if err != nil {
			return nil, nil, 0, err
		}
		tags[line.Record.ID] = reg.Tags(line.Record.Tags)
	}
	return metrics, tags, damage, nil
}
