package report

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/metachaos/metachaos/results"
	"github.com/metachaos/metachaos/results/analysis"
	"github.com/metachaos/metachaos/results/stats"
)

// SummaryPart is what the full summary shows of a scenario, or of a group in
// one. Groups that run in no scenario, such as setup's, stand on their own.
type SummaryPart struct {
	Title   string // SCENARIO: name, or GROUP: name
	Path    string // of a group
	Summary analysis.Summary
	Inner   []SummaryPart // the groups in it
}

// Parts sorts samples by scenario and group and has the metrics of each
// aggregated apart. It is safe for concurrent use.
type Parts struct {
	registry *results.Registry

	mu    sync.Mutex
	root  part
	count int
	// of remembers the parts of a tag set.
	of map[*results.Tags][]*part
}

type part struct {
	title, path string
	metrics     *analysis.Metrics
	inner       map[string]*part // by title
}

var _ results.Recorder = (*Parts)(nil)

const (
	maxParts          = 1000 // the samples of further ones count in what they are part of
	maxRememberedTags = 10_000
	groupSeparator    = "::"
)

// NewParts returns parts without samples. The metrics are those of registry.
func NewParts(registry *results.Registry) *Parts {
	return &Parts{registry: registry, root: part{inner: map[string]*part{}}, of: map[*results.Tags][]*part{}}
}

// Record adds samples.
func (p *Parts) Record(samples ...results.Sample) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range samples {
		for _, part := range p.partsOf(samples[i].Tags) {
			part.metrics.Record(samples[i])
		}
	}
}

func (p *Parts) partsOf(tags *results.Tags) []*part {
	found, known := p.of[tags]
	if known {
		return found
	}
	at := &p.root
	enter := func(title, path string) {
		if at == nil {
			return
		}
		if at = p.enter(at, title, path); at != nil {
			found = append(found, at)
		}
	}
	if scenario, _ := tags.Get("scenario"); scenario != "" {
		enter("SCENARIO: "+scenario, "")
	}
	group, _ := tags.Get("group")
	path := ""
	for name := range strings.SplitSeq(strings.TrimPrefix(group, groupSeparator), groupSeparator) {
		if group != "" {
			path += groupSeparator + name
			enter("GROUP: "+name, path)
		}
	}
	if len(p.of) >= maxRememberedTags {
		clear(p.of)
	}
	p.of[tags] = found
	return found
}

// enter returns the inner part of that title and makes it when it is new, or
// nil when there are too many.
func (p *Parts) enter(outer *part, title, path string) *part {
	if inner := outer.inner[title]; inner != nil || p.count >= maxParts {
		return inner
	}
	metrics, err := analysis.NewMetrics(p.registry, nil)
	if err != nil {
		return nil // there are no thresholds that could be wrong
	}
	p.count++
	outer.inner[title] = &part{title: title, path: path, metrics: metrics, inner: map[string]*part{}}
	return outer.inner[title]
}

// Summary returns the state of all parts; see [analysis.Metrics.Summary].
func (p *Parts) Summary(elapsed time.Duration, trendStats ...stats.Stat) []SummaryPart {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.root.summaries(elapsed, trendStats)
}

func (p *part) summaries(elapsed time.Duration, trendStats []stats.Stat) []SummaryPart {
	var all []SummaryPart
	for _, title := range slices.Sorted(maps.Keys(p.inner)) {
		inner := p.inner[title]
		all = append(all, SummaryPart{Title: title, Path: inner.path, Summary: inner.metrics.Summary(elapsed, trendStats...),
			Inner: inner.summaries(elapsed, trendStats)})
	}
	return all
}

// parts writes a block for each part. Each shows the checks that stand in it
// directly.
func (t *summaryText) parts(all []SummaryPart) {
	for _, p := range all {
		t.totals(p.Title, p.Summary, func(root *analysis.Group, indent int) { t.checkLines(groupAt(root, p.Path), indent) })
		t.indent += 2
		t.parts(p.Inner)
		t.indent -= 2
	}
}

// groupAt returns the group of that path in a tree, or an empty one.
func groupAt(root *analysis.Group, path string) *analysis.Group {
	if root.Path == path {
		return root
	}
	for _, inner := range root.Groups {
		if inner.Path == path || strings.HasPrefix(path, inner.Path+groupSeparator) {
			return groupAt(inner, path)
		}
	}
	return &analysis.Group{}
}
