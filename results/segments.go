package results

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

// A sample is stored as a row of a Parquet file. Parquet because analysts can
// query a run folder with the tools they have, and because it is as small and
// as fast as a format of our own would be: within a segment the rows are
// grouped by metric, so that numbers and counters compress to almost nothing
// and a value costs little more than its random bits.
//
// A Parquet file can be read only once it is complete, so samples are kept in
// segments of a few seconds: a crash loses the last one.
type row struct {
	At     int64   `parquet:"at_ns,delta"`
	Metric int32   `parquet:"metric,delta"`
	Tags   int32   `parquet:"tags,delta"`
	Value  float64 `parquet:"value,split"`
}

const (
	segmentRows = 1 << 18
	segmentAge  = 3 * time.Second
	// rowBatch is how many rows pass through the Parquet writer at a time.
	rowBatch = 4096
)

// segmentStore keeps samples as segments.
type segmentStore struct {
	dir     string
	dict    *dictionary
	writer  *parquet.GenericWriter[row]
	rows    []row // of the segment to come, in the order of arrival
	grouped []row // the same, by metric
	since   time.Time
	number  int
	count   Count
	err     error // the first one
}

var _ store[Sample] = (*segmentStore)(nil)

func newSegmentStore(dir string) (*segmentStore, error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	dict, err := newDictionary(dir)
	if err != nil {
		return nil, err
	}
	writer := parquet.NewGenericWriter[row](nil, parquet.Compression(&zstd.Codec{Level: zstd.SpeedFastest}),
		parquet.SkipPageBounds("tags"), parquet.SkipPageBounds("value")) // nobody seeks by these
	return &segmentStore{dir: dir, dict: dict, writer: writer}, nil
}

func (s *segmentStore) write(samples []Sample) {
	if len(s.rows) == 0 {
		s.since = time.Now()
	}
	for _, x := range samples {
		s.rows = append(s.rows, row{At: int64(x.At), Metric: s.dict.metric(x.Metric), Tags: s.dict.tagSet(x.Tags), Value: x.Value})
	}
	if len(s.rows) >= segmentRows {
		s.cut()
	}
}

func (s *segmentStore) flush(now time.Time) {
	if len(s.rows) > 0 && now.Sub(s.since) >= segmentAge {
		s.cut()
	}
}

// cut ends the segment and makes it readable.
func (s *segmentStore) cut() {
	if len(s.rows) == 0 {
		return
	}
	s.dict.flush()
	s.number++
	s.group()
	if err := s.writeSegment(filepath.Join(s.dir, fmt.Sprintf("%06d.parquet", s.number))); err != nil {
		s.count.Lost += uint64(len(s.rows))
		if s.err == nil {
			s.err = fmt.Errorf("write samples: %w", err)
		}
	} else {
		s.count.Written += uint64(len(s.rows))
	}
	s.rows = s.rows[:0]
}

// group copies rows to grouped: by metric, and within a metric in the order
// of arrival, on which the last value of a gauge depends. Metrics are
// numbered from 0 without holes, so counting sorts them.
func (s *segmentStore) group() {
	next := make([]int, len(s.dict.metrics)+1)
	for i := range s.rows {
		next[s.rows[i].Metric+1]++
	}
	for m := range len(next) - 1 {
		next[m+1] += next[m]
	}
	if cap(s.grouped) < len(s.rows) {
		s.grouped = make([]row, cap(s.rows))
	}
	s.grouped = s.grouped[:len(s.rows)]
	for _, r := range s.rows {
		s.grouped[next[r.Metric]] = r
		next[r.Metric]++
	}
}

func (s *segmentStore) writeSegment(path string) error {
	temporary := path + ".tmp"
	f, err := os.Create(temporary)
	if err != nil {
		return err
	}
	s.writer.Reset(f)
	for rows := s.grouped; len(rows) > 0 && err == nil; {
		n := min(rowBatch, len(rows))
		_, err = s.writer.Write(rows[:n])
		rows = rows[n:]
	}
	err = errors.Join(err, s.writer.Close(), f.Close())
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	return nil
}

func (s *segmentStore) close() (Count, error) {
	s.cut()
	return s.count, errors.Join(s.err, s.dict.close())
}
