package script

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/metachaos/metachaos/results"
)

// collector sums samples by metric, and by metric and group.
type collector struct {
	mu      sync.Mutex
	sums    map[string]float64
	counts  map[string]int
	samples []results.Sample
}

var _ results.Recorder = (*collector)(nil)

func (c *collector) Record(samples ...results.Sample) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range samples {
		c.sums[s.Metric.Name] += s.Value
		c.counts[s.Metric.Name]++
		c.samples = append(c.samples, s)
	}
}

// where sums the values of a metric under tags.
func (c *collector) where(metric string, tags map[string]string) (sum float64) {
	for _, s := range c.samples {
		if s.Metric.Name == metric && s.Tags.Matches(tags) {
			sum += s.Value
		}
	}
	return sum
}

type sinceStart struct{ start time.Time }

var _ Clock = sinceStart{}

func (c sinceStart) Now() time.Duration { return time.Since(c.start) }

// syncBuffer is a log that several VUs write to.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// outcome is all that a test can see of a run.
type outcome struct {
	*collector
	program *Program
	result  Result
	err     error
	log     string
	took    time.Duration
}

func (o outcome) code() int {
	var coded interface{ ExitCode() int }
	if errors.As(o.err, &coded) {
		return coded.ExitCode()
	}
	if o.err != nil {
		return -1
	}
	return 0
}

func source(files map[string]string) Source {
	tree := fstest.MapFS{}
	for name, text := range files {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	path := "script.js"
	if _, ok := files["script.ts"]; ok {
		path = "script.ts"
	}
	return Source{Path: path, ReadFile: func(name string) ([]byte, error) { return fs.ReadFile(tree, name) }}
}

// play loads and executes a script within the time that the caller is in.
func play(ctx context.Context, cfg Config, judge Judge, files map[string]string) outcome {
	log := &syncBuffer{}
	cfg.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o := outcome{collector: &collector{sums: map[string]float64{}, counts: map[string]int{}}}
	start := time.Now()
	o.program, o.err = Load(ctx, source(files), cfg)
	if o.err == nil {
		o.result, o.err = Execute(ctx, o.program, RunConfig{Recorder: o.collector, Clock: sinceStart{start}, Judge: judge})
	}
	o.took, o.log = time.Since(start), log.String()
	return o
}

// run is play in a bubble of virtual time.
func run(t *testing.T, files map[string]string) (o outcome) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { o = play(t.Context(), Config{}, nil, files) })
	return o
}

func script(text string) map[string]string { return map[string]string{"script.js": text} }

func TestAScriptRuns(t *testing.T) {
	o := run(t, map[string]string{"script.js": `
		import { check, group, sleep } from 'k6';
		import { Counter, Trend } from 'k6/metrics';
		import { twice } from './lib/util.js';
		const hits = new Counter('hits'), wait = new Trend('wait', true);
		export const options = { vus: 2, iterations: 6, tags: { env: 'test' } };
		export function setup() { return { step: 2 }; }
		export default function (data) {
			hits.add(twice(data.step), { lane: 'x' });
			group('outer', () => group('inner', () => check(1, { yes: (v) => v === 1, no: () => false })));
			sleep(1);
			wait.add(5);
		}
		export function teardown(data) { console.log('step was ' + data.step); }`,
		"lib/util.js": `export const twice = (n) => 2 * n;`})
	if o.err != nil {
		t.Fatal(o.err)
	}
	if o.sums["hits"] != 24 || o.sums["iterations"] != 6 || o.sums["iteration_duration"] != 6000 || o.sums["wait"] != 30 {
		t.Errorf("sums: %v", o.sums)
	}
	if got := o.where("hits", map[string]string{"lane": "x", "env": "test", "scenario": "default", "group": ""}); got != 24 {
		t.Errorf("tagged hits: %v", got)
	}
	inner := map[string]string{"group": "::outer::inner"}
	if got := o.where("checks", inner); got != 6 || o.counts["checks"] != 12 || o.counts["group_duration"] != 12 {
		t.Errorf("%v checks passed in the inner group, of %d", got, o.counts["checks"])
	}
	if !strings.Contains(o.log, "step was 2") || string(o.result.SetupData) != `{"step":2}` {
		t.Errorf("log: %s\nsetup data: %s", o.log, o.result.SetupData)
	}
	if o.took != 3*time.Second || o.result.Elapsed != 3*time.Second || o.sums["vus"] < 2 {
		t.Errorf("took %v, the scenarios %v; vus summed up to %v", o.took, o.result.Elapsed, o.sums["vus"])
	}
}

func TestExitStatus(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		code int
		says string // in the error or the log
	}{
		"fine":                     {`export default function () {}`, 0, ""},
		"an iteration throws":      {"export default function () {\n  throw new TypeError('odd');\n}", 0, "script.js:2:9"},
		"init throws":              {"const x = 1;\n  throw new RangeError('bad');\nexport default 1;", 107, "RangeError: bad\n\tat script.js:2:9"},
		"syntax":                   {"export default function () {\n  if (a {\n}", 107, "script.js:2:9"},
		"no function":              {`export const a = 1;`, 255, "exports no function"},
		"unknown module":           {`import x from 'k6/nope'; export default function () {}`, 107, `import "k6/nope": there is no such module`},
		"npm":                      {`import x from 'lodash'; export default function () {}`, 107, "npm"},
		"remote":                   {`import x from 'https://h/x.js'; export default function () {}`, 107, "https://h/x.js"},
		"missing file":             {`import x from './gone'; export default function () {}`, 107, "./gone"},
		"missing export":           {`import { ghost } from 'k6'; export default function () {}`, 107, "ghost"},
		"setup throws":             {`export function setup() { throw new Error('no'); } export default function () {}`, 107, "setup: Error: no"},
		"setup is too slow":        {`import { sleep } from 'k6'; export const options = { setupTimeout: '2s' }; export function setup() { sleep(9); } export default function () {}`, 100, "setupTimeout"},
		"teardown is too slow":     {`import { sleep } from 'k6'; export const options = { teardownTimeout: 500 }; export default function () {} export function teardown() { sleep(9); }`, 101, "teardownTimeout"},
		"setup returns a function": {`export function setup() { return { f() {} }; } export default function () {}`, 255, "JSON"},
		"abort":                    {`import exec from 'k6/execution'; export default function () { try { exec.test.abort('enough'); } catch (e) { console.log('caught'); } console.log('went on'); }`, 108, "enough"},
		"abort in init":            {`import exec from 'k6/execution'; exec.test.abort('early'); export default function () {}`, 108, "early"},
		"fail":                     {`import exec from 'k6/execution'; export default function () { exec.test.fail('marked'); }`, 110, "marked"},
		"bad option":               {`export const options = { vus: 'many' }; export default function () {}`, 104, "options.vus: want an integer, got string"},
		"bad scenario field":       {`export const options = { scenarios: { s: { executor: 'constant-vus', duration: '2s', vu: 1 } } }; export default function () {}`, 104, `has no field "vu" (did you mean "vus"?)`},
		"bad executor":             {`export const options = { scenarios: { s: { executor: 'constant' } } }; export default function () {}`, 104, "want one of constant-arrival-rate"},
		"bad scenario name":        {`export const options = { scenarios: { 'a b': { executor: 'shared-iterations' } } }; export default function () {}`, 104, `"a b"`},
		"no such exec":             {`export const options = { scenarios: { s: { executor: 'shared-iterations', exec: 'other' } } }; export default function () {}`, 104, `exports no function "other"`},
		"conflict":                 {`export const options = { iterations: 2, stages: [] }; export default function () {}`, 104, "stages and iterations exclude each other"},
		"threshold as text":        {`export const options = { thresholds: { checks: 'rate>0' } }; export default function () {}`, 104, "options.thresholds.checks: want an array"},
		"bad statistic":            {`export const options = { summaryTrendStats: ['average'] }; export default function () {}`, 255, "average"},
		"unknown option":           {`export const options = { iteration: 2 }; export default function () {}`, 0, `did you mean \"iterations\"?`},
		"one name for two kinds":   {"import { Counter, Trend } from 'k6/metrics';\nnew Counter('twin');\nnew Trend('twin');\nexport default function () {}", 107, "script.js:3:1"},
		"open missing":             {"const t = open('./gone.txt');\nexport default function () {}", 107, "gone.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			o := run(t, script(c.text))
			if o.code() != c.code {
				t.Errorf("exit status %d, want %d (%v)", o.code(), c.code, o.err)
			}
			said := o.log
			if o.err != nil {
				said += Trace(o.err)
			}
			if !strings.Contains(said, c.says) || strings.Contains(said, "caught") || strings.Contains(said, "went on") {
				t.Errorf("said %q, want %q", said, c.says)
			}
		})
	}
}

func TestMaliciousScriptsEnd(t *testing.T) {
	for name, text := range map[string]string{
		"endless init":             `for (;;) {} export default function () {}`,
		"endless recursion":        `function f() { return f(); } f(); export default function () {}`,
		"endless native recursion": `const f = () => [1].map(f); f(); export default function () {}`,
		"endless microtasks":       `const f = () => Promise.resolve().then(f); await f(); export default function () {}`,
		"endless getter":           `const o = { get a() { return this.a; } }; o.a; export default function () {}`,
		"never settles":            `await new Promise(() => {}); export default function () {}`,
		"endless timers":           `await new Promise(() => setInterval(() => {}, 0)); export default function () {}`,
		"toString recursion":       `const o = { toString() { return '' + this; } }; '' + o; export default function () {}`,
	} {
		t.Run(name, func(t *testing.T) {
			o := play(t.Context(), Config{InitTimeout: 300 * time.Millisecond}, nil, script(text))
			if o.err == nil || o.took > 20*time.Second {
				t.Errorf("after %v: %v", o.took, o.err)
			}
		})
	}
}

func TestEndlessRecursionEndsTheIterationOnly(t *testing.T) {
	o := run(t, script(`export const options = { iterations: 3 };
		function f() { return 1 + f(); }
		export default function () { f(); }`))
	if o.err != nil || o.result.Load.Failed != 3 || !strings.Contains(o.log, "too deep") {
		t.Errorf("%v, %+v, %s", o.err, o.result.Load, o.log)
	}
}

func TestLoadReportsAMissingScript(t *testing.T) {
	_, err := Load(t.Context(), Source{Path: "gone.js", ReadFile: func(string) ([]byte, error) { return nil, fs.ErrNotExist }}, Config{})
	var coded *Error
	if !errors.As(err, &coded) || coded.Code != ExitOther || !strings.Contains(err.Error(), "gone.js") {
		t.Errorf("%v, want exit status 255 and the name", err)
	}
}
