package k6options

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// memoryFile keeps what is written to it.
type memoryFile struct {
	bytes.Buffer
	closed bool
}

func (f *memoryFile) Close() error {
	f.closed = true
	return nil
}

func TestLogDestinations(t *testing.T) {
	for _, c := range []struct {
		name string
		log  Log
		// where the message of the script and that of the program arrive
		console, message string
	}{
		{"stderr", Log{Output: "stderr"}, "stderr", "stderr"},
		{"stdout", Log{Output: "stdout"}, "stdout", "stdout"},
		{"none", Log{Output: "none"}, "", ""},
		{"a file", Log{Output: "file", File: "my.log"}, "my.log", "my.log"},
		{"a file for the console", Log{Output: "stderr", Console: "c.log"}, "c.log", "stderr"},
		{"the console survives none", Log{Output: "none", Console: "c.log"}, "c.log", ""},
	} {
		places := map[string]*memoryFile{"stdout": {}, "stderr": {}}
		l, err := c.log.Open(Streams{Stdout: places["stdout"], Stderr: places["stderr"], Append: func(path string) (io.WriteCloser, error) {
			places[path] = &memoryFile{}
			return places[path], nil
		}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		l.Console.Info("from the script")
		l.Log.Warn("from the program")
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		for name, f := range places {
			if got := strings.Contains(f.String(), "from the script"); got != (name == c.console) {
				t.Errorf("%s: %s holds %q", c.name, name, f.String())
			}
			if got := strings.Contains(f.String(), "from the program"); got != (name == c.message) {
				t.Errorf("%s: %s holds %q", c.name, name, f.String())
			}
			if isFile := strings.HasSuffix(name, ".log"); f.closed != isFile {
				t.Errorf("%s: %s closed: %v", c.name, name, f.closed)
			}
		}
	}
}

func TestLogFormats(t *testing.T) {
	write := func(l Log) string {
		var b bytes.Buffer
		loggers, err := l.Open(Streams{Stderr: &b}, nil)
		if err != nil {
			t.Fatal(err)
		}
		loggers.Log.Debug("hidden")
		loggers.Log.With("vu", 3).Warn(`say "hi"`, "source", "console", "odd", "a b")
		return b.String()
	}
	if got := write(Log{Output: "stderr", Format: "raw"}); got != "say \"hi\"\n" {
		t.Errorf("raw: %q", got)
	}
	if got := write(Log{Output: "stderr", Format: "text"}); !strings.HasSuffix(got, ` WARN  say "hi"  vu=3  source=console  odd="a b"`+"\n") {
		t.Errorf("text: %q", got)
	}
	var fields map[string]any
	got := write(Log{Output: "stderr", Format: "json"})
	if err := json.Unmarshal([]byte(got), &fields); err != nil || fields["level"] != "warning" || fields["msg"] != `say "hi"` || fields["source"] != "console" {
		t.Errorf("json: %s, %v", got, err)
	}
	if got := write(Log{Output: "stderr", Format: "raw", Level: slog.LevelDebug}); !strings.Contains(got, "hidden") {
		t.Errorf("verbose: %q", got)
	}
}

func TestLogTellsWhatCannotBeOpened(t *testing.T) {
	full := errors.New("disk full")
	first := &memoryFile{}
	for _, l := range []Log{{Output: "file", File: "x"}, {Output: "file", File: "ok", Console: "x"}} {
		_, err := l.Open(Streams{Append: func(path string) (io.WriteCloser, error) {
			if path == "ok" {
				return first, nil
			}
			return nil, full
		}}, nil)
		if !errors.Is(err, full) {
			t.Errorf("%+v: %v, want %v", l, err, full)
		}
	}
	if !first.closed {
		t.Error("the file that was opened first stays open")
	}
}

// shout stands for what hides secrets.
type shout struct{ slog.Handler }

func (s shout) Handle(ctx context.Context, r slog.Record) error {
	r.Message = strings.ToUpper(r.Message)
	return s.Handler.Handle(ctx, r)
}

func TestLogIsWrappedAndTakesManyWriters(t *testing.T) {
	var b bytes.Buffer
	l, err := Log{Output: "stderr", Format: "raw"}.Open(Streams{Stderr: &b}, func(h slog.Handler) slog.Handler { return shout{h} })
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				l.Console.Info("hello")
			}
		})
	}
	all.Wait()
	if got := strings.Count(b.String(), "HELLO\n"); got != 800 {
		t.Errorf("%d whole lines, want 800", got)
	}
}
