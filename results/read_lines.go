package results

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
)

// Line is one record with its place in its file.
type Line[T any] struct {
	Number int // counts from 1
	Record T
}

// maxLine bounds the memory that a damaged file without line ends can take.
const maxLine = 4 << 20

// readLines yields the records of a file of JSON lines. Lines that are no
// valid record are skipped and added to damage. A file that does not exist is
// empty. The error of a pair is one of reading the file, and ends the
// iteration.
func readLines[T any](path string, valid func(T) bool, damage *uint64) iter.Seq2[Line[T], error] {
	return func(yield func(Line[T], error) bool) {
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			yield(Line[T]{}, err)
			return
		}
		defer f.Close()
		scanner := lineScanner{r: bufio.NewReaderSize(f, lineBufferSize)}
		for number := 1; ; number++ {
			text, err := scanner.next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil && !errors.Is(err, errLongLine) {
				yield(Line[T]{}, err)
				return
			}
			if err == nil && len(text) == 0 {
				continue
			}
			line := Line[T]{Number: number}
			if err != nil || json.Unmarshal(text, &line.Record) != nil || !valid(line.Record) {
				*damage++
				continue
			}
			if !yield(line, nil) {
				return
			}
		}
	}
}

var errLongLine = errors.New("the line is too long")

// lineScanner cuts a stream into lines. Unlike bufio.Scanner it goes on after
// a line that is too long.
type lineScanner struct {
	r    *bufio.Reader
	long []byte
}

// next returns the next line without its end, valid until the next call.
func (s *lineScanner) next() ([]byte, error) {
	part, err := s.r.ReadSlice('\n')
	if err == nil {
		return bytes.TrimSuffix(part, []byte{'\n'}), nil
	}
	s.long = s.long[:0]
	tooLong := false
	for errors.Is(err, bufio.ErrBufferFull) {
		if tooLong = tooLong || len(s.long)+len(part) > maxLine; !tooLong {
			s.long = append(s.long, part...)
		}
		part, err = s.r.ReadSlice('\n')
	}
	s.long = append(s.long, part...)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, err
	case tooLong:
		return nil, errLongLine
	case err != nil && len(s.long) == 0:
		return nil, io.EOF
	}
	return bytes.TrimSuffix(s.long, []byte{'\n'}), nil
}
