package k6options

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Streams are where messages may go.
type Streams struct {
	Stdout, Stderr io.Writer
	// Append opens a file to write at its end, and makes it when it is new.
	Append func(path string) (io.WriteCloser, error)
}

// Loggers are the open destinations of messages.
type Loggers struct {
	// Log takes messages, Console what scripts print; often they are the same.
	Log, Console *slog.Logger
	files        []io.Closer
}

// Close closes the files.
func (l *Loggers) Close() error {
	var errs []error
	for _, f := range l.files {
		errs = append(errs, f.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close log: %w", err)
	}
	return nil
}

// Open opens what l asks for. Wrap, when it is not nil, is laid over every
// handler: it may hide secrets.
func (l Log) Open(s Streams, wrap func(slog.Handler) slog.Handler) (*Loggers, error) {
	out := &Loggers{}
	logger := func(w io.Writer) *slog.Logger {
		h := l.handler(w)
		if wrap != nil {
			h = wrap(h)
		}
		return slog.New(h)
	}
	switch l.Output {
	case "stderr":
		out.Log = logger(s.Stderr)
	case "stdout":
		out.Log = logger(s.Stdout)
	case "none":
		out.Log = slog.New(slog.DiscardHandler)
	case "file":
		f, err := s.Append(l.File)
		if err != nil {
			return nil, fmt.Errorf("open log: %w", err)
		}
		out.Log, out.files = logger(f), append(out.files, f)
	}
	out.Console = out.Log
	if l.Console != "" {
		f, err := s.Append(l.Console)
		if err != nil {
			_ = out.Close() // nothing was written
			return nil, fmt.Errorf("open console output: %w", err)
		}
		out.Console, out.files = logger(f), append(out.files, f)
	}
	return out, nil
}

func (l Log) handler(w io.Writer) slog.Handler {
	if l.Format == "json" {
		return slog.NewJSONHandler(w, &slog.HandlerOptions{Level: l.Level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && a.Key == slog.LevelKey {
				a.Value = slog.StringValue(levelName(a.Value.Any()))
			}
			return a
		}})
	}
	return &lines{out: &lockedWriter{w: w}, level: l.Level, raw: l.Format == "raw"}
}

func levelName(level any) string {
	name := strings.ToLower(fmt.Sprint(level))
	if name == "warn" {
		return "warning" // as k6 writes it
	}
	return name
}

type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

// lines writes one message a line, for people: the text as it is, with what
// belongs to it behind.
type lines struct {
	out   *lockedWriter
	level slog.Level
	raw   bool // the text alone
	attrs []slog.Attr
}

var _ slog.Handler = (*lines)(nil)

// Enabled implements [slog.Handler].
func (h *lines) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

// Handle implements [slog.Handler].
func (h *lines) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	if h.raw {
		b.WriteString(r.Message)
	} else {
		fmt.Fprintf(&b, "%s %-5s %s", r.Time.Format(time.TimeOnly), r.Level, r.Message)
		for _, a := range h.attrs {
			writeAttr(&b, a)
		}
		r.Attrs(func(a slog.Attr) bool {
			writeAttr(&b, a)
			return true
		})
	}
	b.WriteByte('\n')
	h.out.mu.Lock()
	defer h.out.mu.Unlock()
	_, err := io.WriteString(h.out.w, b.String())
	return err
}

func writeAttr(b *strings.Builder, a slog.Attr) {
	value := a.Value.Resolve().String()
	if value == "" || strings.ContainsAny(value, " \t\n\"=") {
		value = strconv.Quote(value)
	}
	fmt.Fprintf(b, "  %s=%s", a.Key, value)
}

// WithAttrs implements [slog.Handler].
func (h *lines) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	c.attrs = slices.Concat(h.attrs, attrs)
	return &c
}

// WithGroup implements [slog.Handler]. Groups do not show.
func (h *lines) WithGroup(string) slog.Handler { return h }
