package metacache_test

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/grafana/sobek"

	"github.com/metachaos/metachaos/load/script"
	"github.com/metachaos/metachaos/results"
	"github.com/metachaos/metachaos/results/analysis"
	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference"
	metacache "github.com/metachaos/metachaos/xk6-metacache"
)

// movingScript reads a range before and after it moved, of which its client
// does not hear.
const movingScript = `
	import { group } from 'k6';
	export const options = { iterations: 1, tags: { env: 'test' } };
	const fleet = new Fleet({ clients: 1, ttl: '1h', readPreference: 'primary', push: false });
	export default function () {
		fleet.read('item-1');
		fleet.write('move', '1');
		group('after', () => fleet.read('item-1'));
		fleet.scan();
		fleet.read('');
	}`

// mover migrates the range of item-1 when it sees a write to the key "move".
type mover struct{ *reference.Memory }

var _ targets.Target = mover{}

func (m mover) Do(ctx context.Context, op targets.Op) targets.Reply {
	r := m.Memory.Do(ctx, op)
	if op.Key == "move" && r.Outcome == targets.Done {
		o := m.Place("item-1")
		entries, err := m.Fetch(ctx, targets.Fetch{Objects: []targets.Object{o}})
		if err != nil {
			panic(err)
		}
		to := map[string]string{"s1": "s2", "s2": "s1"}[entries[0].Owner]
		if _, err := m.Migrate(ctx, o, to, targets.StageHandedOver); err != nil {
			panic(err)
		}
	}
	return r
}

func playMoving(t *testing.T) *outcome {
	t.Helper()
	unfiltered := false
	return play(t, setting{cluster: reference.Config{Replicas: 1, Filter: &unfiltered}, prepare: warmed(t),
		wrap: func(m *reference.Memory) targets.Target { return mover{m} }}, movingScript)
}

func TestMetrics(t *testing.T) {
	o := playMoving(t)
	if o.err != nil {
		t.Fatal(o.err, o.log.String())
	}
	type tags = map[string]string
	for _, c := range []struct {
		metric string
		tags   tags
		sum    float64
		n      int
	}{
		{"metacache_ops", tags{}, 5, 5},
		{"metacache_ops", tags{"env": "test", "scenario": "default", "op": "read", "outcome": "done", "kind": "route"}, 2, 2},
		{"metacache_ops", tags{"op": "write", "outcome": "done"}, 1, 1},
		{"metacache_ops", tags{"op": "scan", "outcome": "done"}, 1, 1},
		{"metacache_ops", tags{"op": "read", "outcome": "refused", "cause": "INVALID"}, 1, 1},
		{"metacache_ops", tags{"op": "read", "group": "::after"}, 1, 1},
		{"metacache_ops", tags{"kind": ""}, 0, 0},
		{"metacache_ops", tags{"shard": "s1", "node": "s1-0"}, 0, -1},
		{"metacache_op_duration", tags{"op": "read", "outcome": "done"}, -1, 2},
		{"metacache_hops", tags{"op": "write"}, 1, 1},
		{"metacache_hops", tags{"op": "scan"}, -1, 1},
		{"metacache_cache_hits", tags{"op": "read"}, -1, 3},
		{"metacache_epoch_lag", tags{"op": "read"}, 1, 2},
		{"metacache_epoch_lag", tags{"op": "read", "group": "::after"}, 1, 1},
		{"metacache_epoch_lag", tags{"op": "write"}, 0, 1},
		{"metacache_epoch_lag", tags{"op": "scan"}, 0, 0},
		{"metacache_refusals", tags{"op": "read", "cause": "STALE_EPOCH"}, 1, 1},
		{"metacache_refusals", tags{"op": "read", "cause": "INVALID"}, 1, 1},
		{"metacache_redirects", tags{"op": "read"}, 1, 1},
		{"metacache_redirect_loops", tags{}, 0, 0},
		{"metacache_duplicates", tags{"op": "scan"}, -1, 1},
		{"metacache_missing", tags{}, 0, 0},
	} {
		sum, n := o.where(c.metric, c.tags)
		if c.sum >= 0 && c.n >= 0 && sum != c.sum || c.n >= 0 && n != c.n {
			t.Errorf("%s%v: %d samples that add up to %g, want %d and %g", c.metric, c.tags, n, sum, c.n, c.sum)
		}
	}
	kinds := map[string]results.Metric{}
	for _, m := range o.program.Registry().Metrics() {
		kinds[m.Name] = *m
	}
	for name, want := range map[string]results.MetricKind{
		"metacache_ops": results.Counter, "metacache_refusals": results.Counter, "metacache_redirects": results.Counter,
		"metacache_redirect_loops": results.Counter, "metacache_duplicates": results.Counter, "metacache_missing": results.Counter,
		"metacache_op_duration": results.Trend, "metacache_epoch_lag": results.Trend, "metacache_hops": results.Trend, "metacache_cache_hits": results.Rate,
	} {
		if m := kinds[name]; m.Kind != want || (m.Contains == results.ContainsTime) != (name == "metacache_op_duration") {
			t.Errorf("%s is %+v", name, m)
		}
	}
}

// quarrel is a cluster of two shards that each take the other for the owner.
type quarrel struct{ instant }

var _ targets.Target = quarrel{}

func (q quarrel) Topology(ctx context.Context) (targets.Topology, error) {
	top, err := q.instant.Topology(ctx)
	top.Nodes = append(top.Nodes, targets.Node{ID: "s2-0", Shard: "s2", Role: targets.RolePrimary, Index: 1})
	return top, err
}

func (quarrel) Do(_ context.Context, op targets.Op) targets.Reply {
	other := map[targets.NodeID]string{"s1-0": "s2", "s2-0": "s1"}[op.Node]
	return targets.Reply{Outcome: targets.Refused, Code: targets.CodeNotOwner, Epoch: 1, Owner: other, Node: op.Node}
}

func TestLoopsAreCounted(t *testing.T) {
	o := play(t, setting{target: func(context.Context) (targets.Target, error) { return quarrel{}, nil }}, `
		const fleet = new Fleet({ push: false, refreshOnMismatch: false, readPreference: 'primary' });
		export default function () { console.log(fleet.read('item-1').loop); }`)
	loops, _ := o.where("metacache_redirect_loops", map[string]string{"op": "read"})
	redirects, _ := o.where("metacache_redirects", map[string]string{"op": "read"})
	refusals, _ := o.where("metacache_refusals", map[string]string{"op": "read", "cause": "NOT_OWNER"})
	limited, _ := o.where("metacache_ops", map[string]string{"outcome": "refused", "cause": "REDIRECT_LIMIT"})
	if o.err != nil || loops != 1 || redirects != 3 || refusals != 4 || limited != 1 || !slices.Equal(o.lines(), []string{"true"}) {
		t.Errorf("%v: %g loops, %g redirects, %g refusals, %g operations at their limit; %q", o.err, loops, redirects, refusals, limited, o.lines())
	}
}

// Thresholds of a script select the module's samples by its tags.
func TestThresholds(t *testing.T) {
	o := playMoving(t)
	if o.err != nil {
		t.Fatal(o.err)
	}
	thresholds := map[string]bool{ // and whether they hold
		"metacache_ops: count==5":                                  true,
		"metacache_ops{op:read,outcome:done}: count==2":            true,
		"metacache_ops{outcome:refused}: count==0":                 false,
		"metacache_op_duration{op:read}: p(95)<1000":               true,
		"metacache_epoch_lag{op:read}: max==1":                     true,
		"metacache_epoch_lag: max<1":                               false,
		"metacache_refusals{cause:STALE_EPOCH}: count==1":          true,
		"metacache_cache_hits{op:read}: rate>=0.99":                false,
		"metacache_duplicates: count>0":                            true,
		"metacache_missing: count==0":                              true,
		"metacache_redirect_loops: count==0":                       true,
		"metacache_hops{op:write}: max==1":                         true,
		"metacache_ops{scenario:default,group:'::after'}: count>0": true,
	}
	parsed := map[string][]analysis.Threshold{}
	for text := range thresholds {
		metric, expression, ok := cutLast(text)
		if !ok {
			t.Fatal(text)
		}
		parsed[metric] = append(parsed[metric], analysis.Threshold{Source: expression})
	}
	m, err := analysis.NewMetrics(o.program.Registry(), parsed)
	if err != nil {
		t.Fatal(err)
	}
	m.Record(o.samples...)
	seen := 0
	for _, metric := range m.Summary(time.Second).Metrics {
		for _, one := range metric.Thresholds {
			for text, want := range thresholds {
				if name, expression, _ := cutLast(text); name == metric.Name && expression == one.Source {
					seen++
					if one.OK != want {
						t.Errorf("%s: holds: %v (observed %v), want %v", text, one.OK, one.Observed, want)
					}
				}
			}
		}
	}
	if seen != len(thresholds) {
		t.Errorf("%d thresholds were judged, want %d", seen, len(thresholds))
	}
}

// cutLast splits "selector: expression".
func cutLast(s string) (metric, expression string, ok bool) {
	for i := len(s) - 2; i > 0; i-- {
		if s[i] == ':' && s[i+1] == ' ' {
			return s[:i], s[i+2:], true
		}
	}
	return "", "", false
}

// Tags of the VU itself that change, as with groups and set by the script,
// are those of each sample.
func TestTagsFollowTheVU(t *testing.T) {
	o := play(t, setting{target: func(context.Context) (targets.Target, error) { return instant{}, nil }}, `
		import exec from 'k6/execution';
		export const options = { vus: 2, iterations: 1300 };
		const fleet = new Fleet({ push: false });
		export default function () {
			exec.vu.metrics.tags.round = String(exec.scenario.iterationInTest); // more sets than are remembered
			fleet.read('item-1');
		}`)
	rounds := map[string]bool{}
	for _, s := range o.samples {
		if s.Metric.Name == "metacache_ops" {
			round, _ := s.Tags.Get("round")
			rounds[round] = true
			if op, _ := s.Tags.Get("op"); op != "read" {
				t.Fatalf("tags %v", s.Tags.Map())
			}
		}
	}
	if o.err != nil || len(rounds) != 1300 {
		t.Errorf("%v: %d different rounds, want 1300", o.err, len(rounds))
	}
}

// neutral is what any engine can offer: no tag sets, no registry.
type neutral struct {
	rt      *sobek.Runtime
	ctx     context.Context
	init    bool
	records []string
	tags    []map[string]string
	known   map[string]*results.Metric
}

var (
	_ script.Host  = (*neutral)(nil)
	_ script.Meter = (*neutral)(nil)
)

func (n *neutral) Context() context.Context             { return n.ctx }
func (n *neutral) Runtime() *sobek.Runtime              { return n.rt }
func (n *neutral) RegisterCallback() func(func() error) { return func(func() error) {} }
func (n *neutral) InInit() bool                         { return n.init }
func (n *neutral) VU() int                              { return 1 }
func (n *neutral) Meter() script.Meter                  { return n }
func (n *neutral) Metric(name string, kind results.MetricKind, c results.Contains) (*results.Metric, error) {
	n.known[name] = &results.Metric{Name: name, Kind: kind, Contains: c}
	return n.known[name], nil
}

func (n *neutral) Record(m *results.Metric, _ float64, tags map[string]string) {
	n.records = append(n.records, m.Name)
	n.tags = append(n.tags, maps.Clone(tags))
}

// The module works on an engine that shows no more than a Host.
func TestANeutralHost(t *testing.T) {
	m := metacache.New(metacache.Env{Base: targets.NewBase(), Target: func(context.Context) (targets.Target, error) { return instant{}, nil }})
	defer m.Close()
	n := &neutral{rt: sobek.New(), ctx: t.Context(), init: true, known: map[string]*results.Metric{}}
	exports := m.Exports(n)
	if err := n.rt.Set("metacache", exports.Default); err != nil {
		t.Fatal(err)
	}
	if _, err := n.rt.RunString("var fleet = new metacache.Fleet({ push: false, clients: 1 })"); err != nil {
		t.Fatal(err)
	}
	n.init = false
	for range 2 {
		if v, err := n.rt.RunString("fleet.read('item-1').ok"); err != nil || !v.ToBoolean() {
			t.Fatal(v, err)
		}
	}
	want := []string{"metacache_ops", "metacache_op_duration", "metacache_hops", "metacache_cache_hits", "metacache_epoch_lag"}
	if !slices.Equal(n.records, append(want, want...)) {
		t.Errorf("recorded %v", n.records)
	}
	if want := (map[string]string{"op": "read", "outcome": "done", "kind": "route", "node": "s1-1", "shard": "s1"}); !reflect.DeepEqual(n.tags[5], want) {
		t.Errorf("tags %v, want %v", n.tags[5], want)
	}
}
