package output

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metachaos/metachaos/internal/suggest"
	"github.com/metachaos/metachaos/results"
)

// timeFormat writes the time of a sample.
type timeFormat func(time.Time) string

func timeFormats() map[string]timeFormat {
	whole := func(n int64) string { return strconv.FormatInt(n, 10) }
	return map[string]timeFormat{
		"unix":         func(t time.Time) string { return whole(t.Unix()) },
		"unix_milli":   func(t time.Time) string { return whole(t.UnixMilli()) },
		"unix_micro":   func(t time.Time) string { return whole(t.UnixMicro()) },
		"unix_nano":    func(t time.Time) string { return whole(t.UnixNano()) },
		"rfc3339":      func(t time.Time) string { return t.Format(time.RFC3339) },
		"rfc3339_nano": func(t time.Time) string { return t.Format(time.RFC3339Nano) },
	}
}

// openCSV makes the output of one row a sample. The argument is a path, or
// settings such as fileName=a.csv,timeFormat=rfc3339 that win over those of
// the environment.
func openCSV(argument string, env Env) (Output, error) {
	s := settings{env: env, prefix: "CSV_"}
	path, format := s.text("FILENAME", "file.csv"), s.text("TIME_FORMAT", "unix")
	every := s.duration("SAVE_INTERVAL", time.Second)
	if s.err != nil {
		return nil, s.err
	}
	switch {
	case argument == "":
	case !strings.Contains(argument, "="):
		path = argument
	default:
		for pair := range strings.SplitSeq(argument, ",") {
			name, value, _ := strings.Cut(pair, "=")
			var err error
			switch name {
			case "fileName", "file_name":
				path = value
			case "timeFormat", "time_format":
				format = value
			case "saveInterval", "save_interval":
				every, err = positive(value)
			default:
				err = fmt.Errorf("unknown setting: %s", suggest.Name(name, []string{"fileName", "timeFormat", "saveInterval"}))
			}
			if err != nil {
				return nil, fmt.Errorf("setting %q: %w", pair, err)
			}
		}
	}
	formats := timeFormats()
	write, ok := formats[format]
	if !ok {
		known := []string{"unix", "unix_milli", "unix_micro", "unix_nano", "rfc3339", "rfc3339_nano"}
		return nil, fmt.Errorf("unknown time format %q: %s", format, suggest.Name(format, known))
	}
	return newFile(env, path, every, func(run Run) encoder { return newCSVRows(run, write) }), nil
}

// csvRows writes the metric, the time, the value, a column for each enabled
// system tag, the other tags, and the metadata.
type csvRows struct {
	run    Run
	time   timeFormat
	system []string // sorted
	tags   memory[[]string]
	out    *csv.Writer
	row    []string
}

var _ encoder = (*csvRows)(nil)

func newCSVRows(run Run, format timeFormat) *csvRows {
	return &csvRows{run: run, time: format, system: slices.Sorted(slices.Values(run.SystemTags)), tags: memory[[]string]{}}
}

func (c *csvRows) header(w *bufio.Writer) error {
	c.out = csv.NewWriter(w) // uses w itself, with its buffer
	return c.out.Write(slices.Concat([]string{"metric_name", "timestamp", "metric_value"}, c.system, []string{"extra_tags", "metadata"}))
}

func (c *csvRows) sample(_ *bufio.Writer, s *results.Sample) error {
	c.row = append(c.row[:0], s.Metric.Name, c.time(c.run.Base.Add(s.At)), strconv.FormatFloat(s.Value, 'f', 6, 64))
	c.row = append(c.row, c.tags.of(s.Tags, func() []string { return c.columns(s.Tags) })...)
	return c.out.Write(c.row)
}

// columns are those after the value.
func (c *csvRows) columns(t *results.Tags) []string {
	split := c.run.split(t)
	var row []string
	for _, name := range c.system {
		value, _ := t.Get(name)
		row = append(row, value)
		delete(split.tags, name)
	}
	return append(row, joinPairs(split.tags), joinPairs(split.metadata))
}

// joinPairs writes a=b&c=d.
func joinPairs(m map[string]string) string {
	var b strings.Builder
	for i, name := range sortedKeys(m) {
		if i > 0 {
			b.WriteByte('&')
		}
		b.WriteString(name + "=" + m[name])
	}
	return b.String()
}
