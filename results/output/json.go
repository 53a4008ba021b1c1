package output

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/metachaos/metachaos/results"
)

const jsonEvery = 200 * time.Millisecond

// openJSON makes the output of one JSON object a line: what a metric is before
// its first sample, and each sample.
func openJSON(path string, env Env) (Output, error) {
	return newFile(env, path, jsonEvery, newJSONLines), nil
}

type jsonLines struct {
	run  Run
	seen map[*results.Metric][]byte // the name, quoted
	tags memory[[]byte]             // the end of a line
	line []byte
}

var _ encoder = (*jsonLines)(nil)

func newJSONLines(run Run) encoder {
	return &jsonLines{run: run, seen: map[*results.Metric][]byte{}, tags: memory[[]byte]{}}
}

func (j *jsonLines) header(*bufio.Writer) error { return nil }

func (j *jsonLines) sample(w *bufio.Writer, s *results.Sample) error {
	name, ok := j.seen[s.Metric]
	if !ok {
		if err := j.metric(w, s.Metric); err != nil {
			return err
		}
		name = j.seen[s.Metric]
	}
	b := append(j.line[:0], `{"metric":`...)
	b = append(b, name...)
	b = append(b, `,"type":"Point","data":{"time":"`...)
	b = j.run.Base.Add(s.At).AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","value":`...)
	b = appendNumber(b, s.Value)
	j.line = append(b, j.tags.of(s.Tags, func() []byte { return j.end(s.Tags) })...)
	_, err := w.Write(j.line)
	return err
}

// end is the rest of a line: the tags, and the metadata if there is some.
func (j *jsonLines) end(t *results.Tags) []byte {
	split := j.run.split(t)
	b := append([]byte(`,"tags":`), plainJSON(split.tags)...)
	if split.metadata != nil {
		b = append(append(b, `,"metadata":`...), plainJSON(split.metadata)...)
	}
	return append(b, "}}\n"...)
}

type jsonMetric struct {
	Name       string          `json:"name"`
	Type       string          `json:"type"`
	Contains   string          `json:"contains"`
	Thresholds []any           `json:"thresholds"`
	SubMetrics []jsonSubMetric `json:"submetrics"`
}

type jsonSubMetric struct {
	Name   string            `json:"name"`
	Suffix string            `json:"suffix"`
	Tags   map[string]string `json:"tags"`
}

type jsonThreshold struct {
	Threshold      string `json:"threshold"`
	AbortOnFail    bool   `json:"abortOnFail"`
	DelayAbortEval string `json:"delayAbortEval"`
}

func (j *jsonLines) metric(w *bufio.Writer, m *results.Metric) error {
	data := jsonMetric{Name: m.Name, Type: string(m.Kind), Contains: string(m.Contains), Thresholds: []any{}}
	for _, watched := range j.run.Watched {
		switch {
		case watched.Metric != m.Name:
		case watched.Tags != nil:
			suffix := strings.TrimSuffix(strings.TrimPrefix(watched.Name, m.Name+"{"), "}")
			data.SubMetrics = append(data.SubMetrics, jsonSubMetric{Name: watched.Name, Suffix: suffix, Tags: watched.Tags})
		default:
			for _, t := range watched.Thresholds {
				data.Thresholds = append(data.Thresholds, t.json())
			}
		}
	}
	name := plainJSON(m.Name)
	j.seen[m] = name
	_, err := fmt.Fprintf(w, `{"type":"Metric","data":%s,"metric":%s}`+"\n", plainJSON(data), name)
	return err
}

func (t Threshold) json() any {
	if !t.AbortOnFail {
		return t.Source
	}
	return jsonThreshold{Threshold: t.Source, AbortOnFail: true, DelayAbortEval: t.DelayAbort.String()}
}

// plainJSON encodes text, maps of text and structures of these, which cannot
// fail, and leaves the signs of HTML as they are: URLs are full of them.
func plainJSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return bytes.TrimSpace(b.Bytes())
}

// appendNumber writes a number as JavaScript does. JSON knows no infinities
// and no NaN: they become null, so that the sample still shows.
func appendNumber(b []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(b, "null"...)
	}
	format := byte('f')
	if size := math.Abs(v); size != 0 && (size < 1e-6 || size >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(b, v, format, -1, 64)
}
