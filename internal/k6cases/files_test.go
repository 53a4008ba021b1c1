package k6cases

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// file judges a file that the run was to write.
func (j *judgement) file(dir, name string, w fileWant) {
	content, err := os.ReadFile(filepath.Join(dir, name))
	if w.Absent {
		if err == nil {
			j.bad("exists")
		}
		return
	}
	if err == nil && w.Gzip {
		content, err = gunzip(content)
	}
	if err != nil {
		j.bad("%v", err)
		return
	}
	if w.Text != nil && *w.Text != string(content) {
		j.bad("got %q, want %q", content, *w.Text)
	}
	j.text("content", string(content), w.Has, w.Not, nil)
	if len(w.JSON) > 0 {
		var value any
		if err := json.Unmarshal(content, &value); err != nil {
			j.bad("%v", err)
			return
		}
		for path, wanted := range w.JSON {
			if d := match(wanted, lookup(value, path)); d != "" {
				j.bad("%s: %s", path, d)
			}
		}
	}
	if len(w.Lines)+len(w.Header) > 0 {
		j.lines(content, w)
	}
}

func gunzip(content []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	return io.ReadAll(z)
}

func (j *judgement) lines(content []byte, w fileWant) {
	read, valueAt := readNDJSON, "data.value"
	if w.CSV {
		read, valueAt = readCSV, "metric_value"
	}
	rows, header, err := read(content)
	if err != nil {
		j.bad("%v", err)
		return
	}
	for _, h := range w.Header {
		if !slices.Contains(header, h) {
			j.bad("column %q is missing", h)
		}
	}
	for _, line := range w.Lines {
		j.line(rows, line, valueAt)
	}
}

func readNDJSON(content []byte) (rows []any, header []string, err error) {
	for i, line := range bytes.Split(bytes.TrimSpace(content), []byte("\n")) {
		var v any
		if err := json.Unmarshal(line, &v); err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		rows = append(rows, v)
	}
	return rows, nil, nil
}

func readCSV(content []byte) (rows []any, header []string, err error) {
	records, err := csv.NewReader(bytes.NewReader(content)).ReadAll()
	if err != nil || len(records) == 0 {
		return nil, nil, fmt.Errorf("csv: %d lines, %w", len(records), err)
	}
	for _, r := range records[1:] {
		row := map[string]any{}
		for i, h := range records[0] {
			if r[i] != "" {
				row[h] = r[i]
			}
		}
		rows = append(rows, row)
	}
	return rows, records[0], nil
}

// line judges the rows that a lineWant is about.
func (j *judgement) line(rows []any, w lineWant, valueAt string) {
	count, sum := 0.0, 0.0
	for _, r := range rows {
		if !matches(r, w.Where) {
			continue
		}
		count++
		switch v := lookup(r, valueAt).(type) {
		case float64:
			sum += v
		case string:
			f, _ := strconv.ParseFloat(v, 64) // no number counts for nothing
			sum += f
		}
		for _, key := range w.HasKey {
			if lookup(r, key) == nil {
				j.bad("a line with %v lacks %s", w.Where, key)
			}
		}
		for _, key := range w.NoKey {
			if lookup(r, key) != nil {
				j.bad("a line with %v has %s", w.Where, key)
			}
		}
	}
	if w.Count == nil && count == 0 {
		j.bad("no line with %v", w.Where)
	}
	if w.Count != nil {
		if d := match(w.Count, count); d != "" {
			j.bad("lines with %v: %s", w.Where, d)
		}
	}
	if w.Sum != nil {
		if d := match(w.Sum, sum); d != "" {
			j.bad("sum over lines with %v: %s", w.Where, d)
		}
	}
}

func matches(row any, where map[string]any) bool {
	for path, wanted := range where {
		if match(wanted, lookup(row, path)) != "" {
			return false
		}
	}
	return true
}

// lookup follows a dotted path; array indices are numbers, "#" is a length,
// and "\." a literal dot.
func lookup(v any, path string) any {
	if path == "" {
		return v
	}
	for key := range strings.SplitSeq(strings.ReplaceAll(path, `\.`, "\x00"), ".") {
		key = strings.ReplaceAll(key, "\x00", ".")
		switch t := v.(type) {
		case map[string]any:
			if v = t[key]; key == "#" {
				v = float64(len(t))
			}
		case []any:
			if key == "#" {
				v = float64(len(t))
				continue
			}
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(t) {
				return nil
			}
			v = t[i]
		default:
			return nil
		}
	}
	return v
}
