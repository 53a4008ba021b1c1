package results

import (
	"errors"
	"os"
	"time"
)

// lineBufferSize is how much a line store collects before it writes.
const lineBufferSize = 64 << 10

// lineStore keeps records as lines of JSON.
type lineStore[T any] struct {
	file    *os.File
	encode  func(line []byte, record T) ([]byte, error)
	buf     []byte
	pending uint64 // records in buf
	torn    bool   // the file may end within a line
	eager   bool   // records are few and must survive a crash: keep none back
	count   Count
	err     error // the first one
}

func newLineStore[T any](path string, encode func([]byte, T) ([]byte, error)) (*lineStore[T], error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	return &lineStore[T]{file: f, encode: encode}, nil
}

func (s *lineStore[T]) write(records []T) {
	for _, r := range records {
		line, err := s.encode(s.buf, r)
		if err != nil {
			s.lose(1, err)
			continue
		}
		s.buf = line
		s.buf = append(s.buf, '\n')
		s.pending++
		if s.eager || len(s.buf) >= lineBufferSize {
			s.drain()
		}
	}
}

func (s *lineStore[T]) flush(time.Time) { s.drain() }

func (s *lineStore[T]) drain() {
	if s.pending == 0 {
		return
	}
	err := s.endTornLine()
	if err == nil {
		_, err = s.file.Write(s.buf)
	}
	if err != nil {
		s.torn = true
		s.lose(s.pending, err)
	} else {
		s.count.Written += s.pending
	}
	s.buf, s.pending = s.buf[:0], 0
}

// endTornLine keeps a line that a failed write cut short from spoiling the
// one after it.
func (s *lineStore[T]) endTornLine() error {
	if !s.torn {
		return nil
	}
	_, err := s.file.Write([]byte{'\n'})
	s.torn = err != nil
	return err
}

func (s *lineStore[T]) lose(n uint64, err error) {
	s.count.Lost += n
	if s.err == nil {
		s.err = err
	}
}

func (s *lineStore[T]) close() (Count, error) {
	s.drain()
	return s.count, errors.Join(s.err, s.file.Sync(), s.file.Close())
}
