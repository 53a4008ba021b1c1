package wal

import (
	"fmt"
	"io"
	"os"
	"sync"
)

// Storage is where a [Log] keeps its bytes. A log calls Write and Truncate
// one at a time; ReadAt may run beside them.
type Storage interface {
	io.ReaderAt
	// Write appends. A short write leaves what it wrote.
	io.Writer
	Size() (int64, error)
	Truncate(size int64) error
	Close() error
}

// File is a [Storage] in one file. It does not sync: a killed process loses
// nothing that it wrote, and a crashed host is not what the reference cluster
// is about.
type File struct{ *os.File }

var _ Storage = File{}

// OpenFile opens or makes the file.
func OpenFile(path string) (File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return File{}, fmt.Errorf("open log: %w", err)
	}
	return File{f}, nil
}

// Size returns the length of the file in bytes.
func (f File) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, fmt.Errorf("size log: %w", err)
	}
	return info.Size(), nil
}

// Memory is a [Storage] in memory. Like a disk it survives Close, so that a
// node can be restarted on it. The zero value is empty and ready.
type Memory struct {
	mu    sync.RWMutex
	bytes []byte
}

var _ Storage = (*Memory)(nil)

// ReadAt reads as [io.ReaderAt] says.
func (m *Memory) ReadAt(p []byte, off int64) (int, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if off < 0 || off >= int64(len(m.bytes)) {
		return 0, io.EOF
	}
	n := copy(p, m.bytes[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Write appends p.
func (m *Memory) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bytes = append(m.bytes, p...)
	return len(p), nil
}

// Size returns the number of bytes held.
func (m *Memory) Size() (int64, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return int64(len(m.bytes)), nil
}

// Truncate cuts to size bytes.
func (m *Memory) Truncate(size int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bytes = m.bytes[:size]
	return nil
}

// Close does nothing.
func (m *Memory) Close() error { return nil }
