// Package wal is an append-only log of checksummed frames. It is what a node
// of the reference cluster keeps on disk: the data nodes their documents and
// metadata, the control plane its truth.
//
// A position is a byte offset. Replicas hold byte-identical logs, so that one
// number says how far each of them is.
package wal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"sync"
)

// ErrClosed is returned by a log that was closed.
var ErrClosed = errors.New("log is closed")

// ErrCorrupt is returned for bytes that are no whole frames.
var ErrCorrupt = errors.New("log frame is corrupt")

const (
	headerSize = 8 // length and CRC-32C of the payload, little endian
	maxPayload = 64 << 20
)

// Log is safe for concurrent use.
type Log struct {
	storage Storage

	mu     sync.Mutex
	end    int64
	closed bool
	grown  chan struct{} // closed and replaced when the log grows or closes
}

// Open reads the log from its start, hands every payload to replay, and cuts
// off a torn end. The payload is only good during the call. The log owns the
// storage from then on.
func Open(storage Storage, replay func(payload []byte) error) (*Log, error) {
	size, err := storage.Size()
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	l := &Log{storage: storage, grown: make(chan struct{})}
	for l.end < size {
		frames, err := read(storage, l.end, size, 1<<20)
		if errors.Is(err, ErrCorrupt) {
			break // torn by the end of the process that wrote it
		}
		if err != nil {
			return nil, fmt.Errorf("open log: %w", err)
		}
		for payload, err := range Payloads(frames) {
			if err != nil {
				size = l.end
				break
			}
			if err := replay(payload); err != nil {
				return nil, fmt.Errorf("replay log at %d: %w", l.end, err)
			}
			l.end = Next(l.end, payload)
		}
	}
	if err := storage.Truncate(l.end); err != nil {
		return nil, fmt.Errorf("cut torn end of log: %w", err)
	}
	return l, nil
}

// Append writes the payloads as one write and returns the new end. After an
// error nothing was appended.
func (l *Log) Append(payloads ...[]byte) (int64, error) {
	var frames []byte
	for _, p := range payloads {
		if len(p) > maxPayload {
			return 0, fmt.Errorf("append to log: %d bytes are more than a frame holds (%d)", len(p), maxPayload)
		}
		frames = binary.LittleEndian.AppendUint32(frames, uint32(len(p)))
		frames = binary.LittleEndian.AppendUint32(frames, crc32.Checksum(p, castagnoli()))
		frames = append(frames, p...)
	}
	return l.AppendFrames(frames)
}

// AppendFrames writes frames that another log's Read returned.
func (l *Log) AppendFrames(frames []byte) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, ErrClosed
	}
	if _, err := l.storage.Write(frames); err != nil {
		return 0, errors.Join(fmt.Errorf("append to log: %w", err), l.storage.Truncate(l.end))
	}
	l.end += int64(len(frames))
	close(l.grown)
	l.grown = make(chan struct{})
	return l.end, nil
}

// End returns the position after the last frame.
func (l *Log) End() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end
}

// WaitFor returns once the log's end is at least position.
func (l *Log) WaitFor(ctx context.Context, position int64) error {
	for {
		l.mu.Lock()
		end, closed, grown := l.end, l.closed, l.grown
		l.mu.Unlock()
		if end >= position {
			return nil
		}
		if closed {
			return ErrClosed
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-grown:
		}
	}
}

// Read returns whole frames from a position: as many as fit into limit bytes,
// but at least one unless the position is the end.
func (l *Log) Read(from int64, limit int) ([]byte, error) {
	end := l.End()
	if from < 0 || from > end {
		return nil, fmt.Errorf("read log: position %d is not within its %d bytes", from, end)
	}
	return read(l.storage, from, end, limit)
}

// Close closes the storage and wakes all who wait.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	close(l.grown)
	l.grown = make(chan struct{})
	return l.storage.Close()
}

func read(from io.ReaderAt, start, end int64, limit int) ([]byte, error) {
	buf := make([]byte, min(end-start, int64(limit)))
	if err := readFull(from, buf, start); err != nil {
		return nil, err
	}
	if n := wholeFrames(buf); n > 0 || len(buf) == 0 {
		return buf[:n], nil
	}
	if len(buf) < headerSize { // the first frame is larger than the limit, or torn
		buf = make([]byte, min(end-start, headerSize))
		if err := readFull(from, buf, start); err != nil {
			return nil, err
		}
		if len(buf) < headerSize {
			return nil, ErrCorrupt
		}
	}
	size := headerSize + int64(binary.LittleEndian.Uint32(buf))
	if size > headerSize+maxPayload || start+size > end {
		return nil, ErrCorrupt
	}
	buf = make([]byte, size)
	return buf, readFull(from, buf, start)
}

func readFull(from io.ReaderAt, buf []byte, start int64) error {
	if n, err := from.ReadAt(buf, start); n < len(buf) {
		return fmt.Errorf("read log at %d: %w", start, err)
	}
	return nil
}

// wholeFrames returns the length of the longest prefix made of whole frames.
func wholeFrames(buf []byte) int {
	n := 0
	for len(buf)-n >= headerSize {
		size := headerSize + int64(binary.LittleEndian.Uint32(buf[n:]))
		if int64(len(buf)-n) < size {
			break
		}
		n += int(size)
	}
	return n
}

// Payloads yields the payload of every frame, and one error where the bytes
// stop to be whole and intact frames.
func Payloads(frames []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for len(frames) > 0 {
			if len(frames) < headerSize {
				yield(nil, ErrCorrupt)
				return
			}
			size := int64(binary.LittleEndian.Uint32(frames))
			if size > maxPayload || headerSize+size > int64(len(frames)) {
				yield(nil, ErrCorrupt)
				return
			}
			payload := frames[headerSize : headerSize+size]
			if crc32.Checksum(payload, castagnoli()) != binary.LittleEndian.Uint32(frames[4:]) {
				yield(nil, ErrCorrupt)
				return
			}
			if !yield(payload, nil) {
				return
			}
			frames = frames[headerSize+size:]
		}
	}
}

// castagnoli is the polynomial that CPUs compute; MakeTable caches it.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// Next returns the position after a frame with that payload which begins at
// position.
func Next(position int64, payload []byte) int64 { return position + headerSize + int64(len(payload)) }
