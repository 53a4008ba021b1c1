package results

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
)

// Samples yields the samples, segment by segment: within a segment of a few
// seconds those of one metric come together, in the order of recording. Their
// metrics and tags are of [Run.Registry].
func (r *Run) Samples() iter.Seq2[Sample, error] {
	return func(yield func(Sample, error) bool) {
		dir := filepath.Join(r.dir, samplesDir)
		metrics, tags, damage, err := readDictionary(dir, r.registry)
		if err != nil {
			yield(Sample{}, err)
			return
		}
		paths, err := segmentPaths(dir)
		if err != nil {
			yield(Sample{}, err)
			return
		}
		for _, path := range paths {
			for row, err := range readSegment(path) {
				if err != nil {
					damage++ // the rest of this segment cannot be read
					break
				}
				metric, known := metrics[row.Metric]
				set, tagged := tags[row.Tags]
				if !known || !tagged {
					damage++
					continue
				}
				if !yield(sampleOf(row, metric, set), nil) {
					return
				}
			}
		}
		r.damage.Samples = damage
	}
}

// segmentPaths returns the segments in the order of writing. A segment that
// was being written when the process died is among them: it counts as damage.
func segmentPaths(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir) // sorted by name
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var paths []string
	for _, e := range entries {
		if name := strings.TrimSuffix(e.Name(), ".tmp"); strings.HasSuffix(name, ".parquet") {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths, err
}

// readSegment yields the rows of one file. The library panics on some damaged
// files; that is an error like any other here.
func readSegment(path string) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		reader, f, err := openSegment(path)
		if err != nil {
			yield(row{}, err)
			return
		}
		defer f.Close()
		rows := make([]row, rowBatch)
		for {
			n, err := readRows(reader, rows)
			for _, r := range rows[:n] {
				if !yield(r, nil) {
					return
				}
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(row{}, err)
				return
			}
		}
	}
}

func openSegment(path string) (_ *parquet.GenericReader[row], _ *os.File, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("damaged segment: %v", r)
		}
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, f, err
	}
	if err := checkFooter(f, info.Size()); err != nil {
		return nil, f, err
	}
	file, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		return nil, f, err
	}
	if want := parquet.SchemaOf(row{}); !parquet.EqualNodes(want, file.Schema()) {
		return nil, f, fmt.Errorf("the segment has other columns: %s", file.Schema())
	}
	return parquet.NewGenericReader[row](file), f, nil
}

// checkFooter refuses a file whose footer claims to be longer than the file.
// The library would allocate what it claims, up to 4 GiB.
func checkFooter(f io.ReaderAt, size int64) error {
	var tail [8]byte // the length of the footer, and the magic number
	if size < int64(len(tail)) {
		return fmt.Errorf("damaged segment: only %d bytes", size)
	}
	if _, err := f.ReadAt(tail[:], size-int64(len(tail))); err != nil {
		return err
	}
	if length := int64(binary.LittleEndian.Uint32(tail[:])); length > size-int64(len(tail)) {
		return fmt.Errorf("damaged segment: a footer of %d bytes in a file of %d", length, size)
	}
	return nil
}

func readRows(reader *parquet.GenericReader[row], rows []row) (n int, err error) {
	defer func() {
		if r := recover(); r != nil {
			n, err = 0, fmt.Errorf("damaged segment: %v", r)
		}
	}()
	return reader.Read(rows)
}

func sampleOf(r row, m *Metric, t *Tags) Sample {
	return Sample{At: time.Duration(r.At), Metric: m, Tags: t, Value: r.Value}
}
