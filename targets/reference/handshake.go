package reference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/metachaos/metachaos/targets"
)

// A node process and its parent speak lines of JSON. The parent writes a
// birth to the node's standard input, then a directory whenever an address
// changes. The node writes one announcement to its standard output. The end of
// its input is the node's order to stop, and comes also when the parent dies.

// birth is what a node process is told first.
type birth struct {
	Node   targets.Node `json:"node"`
	Config Config       `json:"config"`
	Base   string       `json:"base"`
	Dir    string       `json:"dir"`
}

// announcement is where a node process listens.
type announcement struct {
	Addr string `json:"addr"`
}

// directory is where all nodes are.
type directory map[targets.NodeID]string

func writeLine(w io.Writer, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %T: %w", v, err)
	}
	if _, err := w.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write %T: %w", v, err)
	}
	return nil
}

// firstLine is a writer that hands on the first line and drops the rest.
type firstLine struct {
	line chan []byte // of capacity 1
	buf  []byte
	done bool
}

func (f *firstLine) Write(p []byte) (int, error) {
	if f.done {
		return len(p), nil
	}
	f.buf = append(f.buf, p...)
	if i := bytes.IndexByte(f.buf, '\n'); i >= 0 {
		f.done = true
		f.line <- f.buf[:i]
	}
	return len(p), nil
}

// lockedWriter lets several processes share one writer.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// lastWords hands on what is written and keeps the end of it, for the error
// that tells why a process ended.
type lastWords struct {
	to io.Writer

	mu   sync.Mutex
	kept []byte
}

const maxLastWords = 2 << 10

func (l *lastWords) Write(p []byte) (int, error) {
	l.mu.Lock()
	l.kept = append(l.kept, p...)
	l.kept = l.kept[max(0, len(l.kept)-maxLastWords):]
	l.mu.Unlock()
	return l.to.Write(p)
}

func (l *lastWords) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(bytes.TrimSpace(l.kept))
}
