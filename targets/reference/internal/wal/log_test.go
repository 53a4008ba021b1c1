package wal

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
)

func reopen(t *testing.T, s Storage) (*Log, []string) {
	t.Helper()
	var got []string
	l, err := Open(s, func(p []byte) error { got = append(got, string(p)); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return l, got
}

func TestReopenReplaysAndCutsTheTornEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	file := func() Storage {
		f, err := OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	memory := &Memory{}
	for name, storage := range map[string]func() Storage{"file": file, "memory": func() Storage { return memory }} {
		t.Run(name, func(t *testing.T) {
			l, _ := reopen(t, storage())
			whole, err := l.Append([]byte("one"), nil, []byte("three"))
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			// A header that promises more than follows, and a flipped bit.
			for _, torn := range [][]byte{{9, 0, 0, 0}, {9, 0, 0, 0, 0, 0, 0, 0, 1}, {1, 0, 0, 0, 1, 2, 3, 4, 'x'}} {
				s := storage()
				if _, err := s.Write(torn); err != nil {
					t.Fatal(err)
				}
				l, got := reopen(t, s)
				if !slices.Equal(got, []string{"one", "", "three"}) || l.End() != whole {
					t.Errorf("after torn %v: replayed %q up to %d, want the three payloads up to %d", torn, got, l.End(), whole)
				}
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestReadReturnsWholeFrames(t *testing.T) {
	l, _ := reopen(t, &Memory{})
	end, err := l.Append([]byte("aaaa"), bytes.Repeat([]byte("b"), 100), []byte("c"))
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int{1, 8, 12, 13, 64, 200} {
		var got []byte
		for from := int64(0); from < end; {
			frames, err := l.Read(from, limit)
			if err != nil || len(frames) == 0 {
				t.Fatalf("limit %d at %d: %d bytes, %v", limit, from, len(frames), err)
			}
			got = append(got, frames...)
			from += int64(len(frames))
		}
		var lengths []int
		for p, err := range Payloads(got) {
			if err != nil {
				t.Fatal(err)
			}
			lengths = append(lengths, len(p))
		}
		if !slices.Equal(lengths, []int{4, 100, 1}) {
			t.Errorf("limit %d: payloads of %v bytes", limit, lengths)
		}
	}
	if _, err := l.Read(end+1, 10); err == nil {
		t.Error("reading past the end is no error")
	}
}

func TestWaitFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := reopen(t, &Memory{})
		grown, closed := make(chan error, 1), make(chan error, 1)
		go func() { grown <- l.WaitFor(context.Background(), 9) }()
		go func() { closed <- l.WaitFor(context.Background(), 1000) }()
		synctest.Wait()
		if _, err := l.Append([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := <-grown; err != nil {
			t.Error(err)
		}
		_ = l.Close()
		if err := <-closed; !errors.Is(err, ErrClosed) {
			t.Errorf("waiting on a closed log: %v", err)
		}
		if _, err := l.Append(nil); !errors.Is(err, ErrClosed) {
			t.Errorf("appending to a closed log: %v", err)
		}
	})
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 1, 2, 3, 4, 'x'})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, raw []byte) {
		l, err := Open(&Memory{bytes: raw}, func([]byte) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if l.End() > int64(len(raw)) {
			t.Fatalf("end %d of %d bytes", l.End(), len(raw))
		}
	})
}
