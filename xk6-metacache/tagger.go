package metacache

import (
	"github.com/metachaos/metachaos/load/script"
	"github.com/metachaos/metachaos/results"
)

// labels are the tags that the module adds to those of the VU. Empty ones are
// left out.
type labels struct{ op, outcome, kind, node, shard, cause string }

func (l labels) each(f func(key, value string)) {
	for _, tag := range [...][2]string{{"op", l.op}, {"outcome", l.outcome}, {"kind", l.kind}, {"node", l.node}, {"shard", l.shard}, {"cause", l.cause}} {
		if tag[1] != "" {
			f(tag[0], tag[1])
		}
	}
}

// tags are labels in the form that the engine takes: the whole set where it
// knows sets, or what is to be added.
type tags struct {
	set   *results.Tags
	added map[string]string
}

// tagger records samples under labels. There are few different ones in a run,
// and it remembers them, so that an operation makes no maps. It belongs to one
// VU.
type tagger struct {
	meter script.Meter
	host  script.ProtocolHost // nil if the engine shows no tag sets
	known map[tagKey]tags
}

// tagKey is labels on top of what the VU's own tags were.
type tagKey struct {
	base *results.Tags
	labels
}

// maxKnown bounds what a tagger remembers. Beyond it the VU's own tags do not
// repeat, and remembering is of no use.
const maxKnown = 512

func newTagger(h script.Host) tagger {
	host, _ := h.(script.ProtocolHost)
	return tagger{meter: h.Meter(), host: host, known: map[tagKey]tags{}}
}

// of returns the tags for labels.
func (t *tagger) of(l labels) tags {
	key := tagKey{labels: l}
	if t.host != nil {
		key.base = t.host.Tags()
	}
	if found, ok := t.known[key]; ok {
		return found
	}
	var made tags
	if t.host != nil {
		made.set = key.base
		l.each(func(key, value string) { made.set = made.set.With(key, value) })
	} else {
		made.added = map[string]string{}
		l.each(func(key, value string) { made.added[key] = value })
	}
	if len(t.known) >= maxKnown {
		clear(t.known)
	}
	t.known[key] = made
	return made
}

// record adds one sample now.
func (t *tagger) record(metric *results.Metric, value float64, as tags) {
	if t.host != nil {
		t.host.Sample(metric, value, as.set)
		return
	}
	t.meter.Record(metric, value, as.added)
}
