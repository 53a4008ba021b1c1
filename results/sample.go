package results

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// MetricKind says how the values of a metric aggregate.
type MetricKind string

// The kinds of metrics, as k6 names them.
const (
	Counter MetricKind = "counter"
	Gauge   MetricKind = "gauge"
	Rate    MetricKind = "rate"
	Trend   MetricKind = "trend"
)

// Contains says what the values of a metric are.
type Contains string

// What a metric contains: plain numbers, times in milliseconds, or bytes.
const (
	ContainsDefault Contains = "default"
	ContainsTime    Contains = "time"
	ContainsData    Contains = "data"
)

// Metric is a named series of samples. It is immutable and unique per
// [Registry]: compare pointers.
type Metric struct {
	Name     string     `json:"name"`
	Kind     MetricKind `json:"type"`
	Contains Contains   `json:"contains"`
}

// Tags is an immutable set of tags, unique per [Registry] for equal contents:
// compare pointers. A nil Tags is the empty set.
type Tags struct {
	reg  *Registry
	m    map[string]string
	text string
}

// Sample is one measured value. At is an offset from the run's base instant.
type Sample struct {
	At     time.Duration
	Metric *Metric
	Tags   *Tags
	Value  float64
}

// Recorder takes samples. Implementations are safe for concurrent use and wait
// for slow storage a bounded time at most. They do not keep the slice.
type Recorder interface {
	Record(samples ...Sample)
}

// Registry holds the metrics and tag sets of one run. It is safe for
// concurrent use.
type Registry struct {
	mu      sync.RWMutex
	metrics map[string]*Metric
	order   []*Metric
	tags    map[string]*Tags
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry {
	return &Registry{metrics: map[string]*Metric{}, tags: map[string]*Tags{}}
}

// Metric returns the metric of that name and makes it when it is new. A name
// that already stands for another kind is an error.
func (r *Registry) Metric(name string, kind MetricKind, contains Contains) (*Metric, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m, ok := r.metrics[name]; ok {
		if m.Kind != kind || m.Contains != contains {
			return nil, fmt.Errorf("metric %q already exists with type %s (%s) and cannot be made again as %s (%s)",
				name, m.Kind, m.Contains, kind, contains)
		}
		return m, nil
	}
	m := &Metric{Name: name, Kind: kind, Contains: contains}
	r.metrics[name] = m
	r.order = append(r.order, m)
	return m, nil
}

// MustMetric is [Registry.Metric] for names that the program itself owns; it
// panics on a conflict.
func (r *Registry) MustMetric(name string, kind MetricKind, contains Contains) *Metric {
	m, err := r.Metric(name, kind, contains)
	if err != nil {
		panic(err)
	}
	return m
}

// Lookup returns the metric of that name, or nil.
func (r *Registry) Lookup(name string) *Metric {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.metrics[name]
}

// Metrics returns all metrics in the order in which they were made.
func (r *Registry) Metrics() []*Metric {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Clone(r.order)
}

// Tags returns the set with these tags. The map is copied.
func (r *Registry) Tags(m map[string]string) *Tags {
	text := encodeTags(m)
	r.mu.RLock()
	t := r.tags[text]
	r.mu.RUnlock()
	if t != nil {
		return t
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.tags[text]; t != nil {
		return t
	}
	t = &Tags{reg: r, m: maps.Clone(m), text: text}
	if t.m == nil {
		t.m = map[string]string{}
	}
	r.tags[text] = t
	return t
}

// With returns the set with one tag added or replaced. The receiver must not
// be nil.
func (t *Tags) With(key, value string) *Tags {
	if have, ok := t.m[key]; ok && have == value {
		return t
	}
	m := maps.Clone(t.m)
	m[key] = value
	return t.reg.Tags(m)
}

// WithAll returns the set with all of these tags added or replaced. The
// receiver must not be nil.
func (t *Tags) WithAll(more map[string]string) *Tags {
	m := maps.Clone(t.m)
	maps.Copy(m, more)
	return t.reg.Tags(m)
}

// Get returns the value of a tag.
func (t *Tags) Get(key string) (string, bool) {
	if t == nil {
		return "", false
	}
	v, ok := t.m[key]
	return v, ok
}

// Map returns a copy of the tags.
func (t *Tags) Map() map[string]string {
	if t == nil {
		return map[string]string{}
	}
	return maps.Clone(t.m)
}

// Matches reports whether every tag of sel stands in t with that value.
func (t *Tags) Matches(sel map[string]string) bool {
	for k, v := range sel {
		if have, ok := t.Get(k); !ok || have != v {
			return false
		}
	}
	return true
}

// encodeTags gives equal sets equal text, and different sets different text.
func encodeTags(m map[string]string) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&b, "%q=%q ", k, m[k])
	}
	return b.String()
}
