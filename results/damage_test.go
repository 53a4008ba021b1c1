package results

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/metachaos/metachaos/targets"
)

func TestDamageIsCountedAndSkipped(t *testing.T) {
	f := mustCreate(t, Manifest{})
	for i := range 3 {
		f.Event(targets.Event{Start: time.Duration(i), End: time.Duration(i), Verb: targets.EventRead, Outcome: targets.Done})
	}
	if err := f.Close(nil); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(f.Dir(), EventsFile)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(content), "\n")
	damaged := lines[0] +
		"\x00\x00\x00\n" + // a block that never reached the disk
		"null\n" + // valid JSON, but no event
		strings.Repeat("x", maxLine+1) + "\n" + // no line end for long
		lines[1] +
		"\n" + // left by a retry; no record
		lines[2][:len(lines[2])/2] // cut short
	if err := os.WriteFile(path, []byte(damaged), 0o644); err != nil {
		t.Fatal(err)
	}
	run := mustOpen(t, f.Dir())
	var numbers []int
	for range 2 { // a second pass counts the same damage, not more
		numbers = nil
		for line, err := range run.EventLines() {
			if err != nil {
				t.Fatal(err)
			}
			numbers = append(numbers, line.Number)
		}
	}
	equal(t, numbers, []int{1, 5})
	if d := run.Damage(); d.Events != 4 || d.Total() != 4 {
		t.Errorf("damage = %+v, want 4 events", d)
	}
}

func TestCrashLosesOnlyTheOpenSegment(t *testing.T) {
	f := mustCreate(t, Manifest{Name: "crashed"})
	m := NewRegistry().MustMetric("n", Counter, ContainsDefault)
	batch := make([]Sample, segmentRows)
	for i := range batch {
		batch[i] = Sample{Metric: m, Value: 1}
	}
	f.Record(batch...) // fills one segment, which is then readable
	waitFor(t, func() bool {
		paths, err := segmentPaths(filepath.Join(f.Dir(), samplesDir))
		return err == nil && len(paths) == 1 && strings.HasSuffix(paths[0], ".parquet")
	})
	torn := filepath.Join(f.Dir(), samplesDir, "000002.parquet.tmp")
	if err := os.WriteFile(torn, []byte("PAR1 and then the power failed"), 0o644); err != nil {
		t.Fatal(err)
	}
	run := mustOpen(t, f.Dir())
	if n := len(collect(t, run.Samples())); n != segmentRows {
		t.Errorf("read %d samples, want %d", n, segmentRows)
	}
	if d := run.Damage(); d.Samples != 1 || run.Manifest().Complete {
		t.Errorf("damage = %+v, complete = %v", d, run.Manifest().Complete)
	}
	if err := f.Close(nil); err != nil {
		t.Fatal(err)
	}
}

// TestFlippedBytesInASegment damages one byte at a time: reading neither panics
// nor takes memory beyond reason.
func TestFlippedBytesInASegment(t *testing.T) {
	f := mustCreate(t, Manifest{})
	m := NewRegistry().MustMetric("n", Counter, ContainsDefault)
	for i := range 1000 {
		f.Record(Sample{At: time.Duration(i), Metric: m, Value: float64(i)})
	}
	if err := f.Close(nil); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(f.Dir(), samplesDir, "000001.parquet")
	intact, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damagedOnce := false
	for at := range intact {
		if at%7 != 0 && at < len(intact)-8 {
			continue // a sample of the pages, but all of the tail, which says how long the footer is
		}
		b := append([]byte(nil), intact...)
		b[at] ^= 0xff
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		run := mustOpen(t, f.Dir())
		collect(t, run.Samples())
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 256<<20 {
			t.Errorf("with byte %d of %d damaged, reading took %d bytes of memory", at, len(intact), took)
		}
		damagedOnce = damagedOnce || run.Damage().Samples > 0
	}
	if !damagedOnce {
		t.Error("no flipped byte was noticed")
	}
}

// TestFailedWriteSpoilsNoLaterLine lets the disk fail once: what was under way
// is lost and counted, and what follows begins on a line of its own.
func TestFailedWriteSpoilsNoLaterLine(t *testing.T) {
	s, err := newLineStore(filepath.Join(t.TempDir(), "lines"), appendJSON[int])
	if err != nil {
		t.Fatal(err)
	}
	disk := s.file
	full, err := os.OpenFile(disk.Name(), os.O_RDONLY, 0) // takes no writes, like a full disk
	if err != nil {
		t.Fatal(err)
	}
	if _, err := disk.WriteString("[1,"); err != nil { // as far as the failing write got
		t.Fatal(err)
	}
	s.file = full
	s.write([]int{1, 2})
	s.flush(time.Time{})
	if err := full.Close(); err != nil {
		t.Fatal(err)
	}
	s.file = disk
	s.write([]int{3})
	count, err := s.close()
	content, readErr := os.ReadFile(disk.Name())
	if want := "[1,\n3\n"; string(content) != want || readErr != nil {
		t.Errorf("the file holds %q, %v, want %q", content, readErr, want)
	}
	if count != (Count{Written: 1, Lost: 2}) || err == nil {
		t.Errorf("count = %+v, %v, want 1 written, 2 lost and why", count, err)
	}
}
