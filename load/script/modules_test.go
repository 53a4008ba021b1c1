package script

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/grafana/sobek"

	"github.com/metachaos/metachaos/results"
)

// passes runs a script whose checks must all hold, so many of them.
func passes(t *testing.T, want int, files map[string]string) outcome {
	t.Helper()
	o := run(t, files)
	if o.err != nil || int(o.sums["checks"]) != want || o.counts["checks"] != want {
		t.Errorf("%v of %d checks hold, want %d; error %v; log:\n%s", o.sums["checks"], o.counts["checks"], want, o.err, o.log)
	}
	return o
}

func TestExecutionModule(t *testing.T) {
	passes(t, 2*15, script(`
		import exec from 'k6/execution';
		import { check, sleep } from 'k6';
		export const options = { vus: 2, iterations: 2, thresholds: { checks: ['rate>0.1'] }, setupTimeout: '7s' };
		let early = 'none';
		try { exec.vu.idInTest; } catch (e) { early = String(e); }
		export default function () {
			sleep(1); // or one VU might take both iterations
			const tags = exec.vu.metrics.tags;
			tags.num = 7; tags.flag = true;
			let refused = false;
			try { tags.obj = {}; } catch (e) { refused = e instanceof TypeError; }
			check(exec, {
				early: () => early.includes('init code'), refused: () => refused,
				ids: (e) => e.vu.idInInstance === __VU && e.vu.idInTest === __VU,
				iterations: (e) => e.vu.iterationInInstance === __ITER && e.vu.iterationInScenario === 0,
				initialized: (e) => e.instance.vusInitialized === 2, active: (e) => e.instance.vusActive >= 1,
				counts: (e) => e.instance.iterationsInterrupted === 0 && e.instance.iterationsCompleted < 2,
				scenario: (e) => e.scenario.name === 'default' && e.scenario.executor === 'shared-iterations' && e.scenario.progress < 1,
				inTest: (e) => e.scenario.iterationInTest < 2, started: (e) => e.scenario.startTime > 1e9,
				options: (e) => e.test.options.scenarios.default.vus === 2 && e.test.options.thresholds.checks.length === 1,
				setup: (e) => e.test.options.setupTimeout === '7s',
				tags: () => tags.num === '7' && tags.flag === 'true' && tags.scenario === 'default',
				keys: () => Object.keys(tags).includes('flag'), deleted: () => { delete tags.num; return tags.num === undefined; },
			});
		}`))
}

func TestSharedArray(t *testing.T) {
	files := script(`
		import { SharedArray } from 'k6/data';
		import { check } from 'k6';
		const a = new SharedArray('rows', () => { console.log('filled'); return JSON.parse(open('./rows.json')); });
		const threw = (f) => { try { f(); return ''; } catch (e) { return e.constructor.name; } };
		export const options = { vus: 2, iterations: 2 };
		export default function () {
			check(a, {
				length: (x) => x.length === 2 && Array.isArray(x), index: (x) => x[1].id === 2, outside: (x) => x[9] === undefined,
				loop: (x) => { let s = 0; for (const r of x) s += r.id; return s === 3; }, map: (x) => x.map((r) => r.id).join() === '1,2',
				frozen: (x) => threw(() => { x[0].id = 9; }) === 'TypeError', slot: (x) => threw(() => { x[0] = 1; }) === 'TypeError',
				push: (x) => threw(() => x.push(1)) === 'TypeError', late: () => threw(() => new SharedArray('late', () => [])) !== '',
			});
		}`)
	files["rows.json"] = `[{"id":1},{"id":2}]`
	if o := passes(t, 2*9, files); strings.Count(o.log, "filled") != 1 {
		t.Errorf("filled %d times, want once", strings.Count(o.log, "filled"))
	}
}

func TestTimersAndPromises(t *testing.T) {
	o := run(t, script(`
		import { setTimeout as later } from 'k6/timers';
		export const options = { iterations: 2 };
		export default async function () {
			const order = [];
			later(() => order.push('late'), 30000); setTimeout(() => order.push('timer'), 0);
			const id = setInterval(() => { order.push('tick'); if (order.filter((x) => x === 'tick').length === 2) clearInterval(id); }, 1000);
			clearTimeout(setTimeout(() => order.push('never'), 5));
			Promise.resolve().then(() => order.push('m1')).then(() => order.push('m2'));
			order.push('sync');
			await new Promise((ok) => setTimeout(ok, 60000));
			console.log(order.join());
		}`))
	if o.err != nil || strings.Count(o.log, "sync,m1,m2,timer,tick,tick,late") != 2 || o.took != 2*time.Minute {
		t.Errorf("%v after %v: %s", o.err, o.took, o.log)
	}
}

func TestARejectionEndsTheIteration(t *testing.T) {
	o := run(t, script("export const options = { iterations: 2 };\n"+
		"export default async function () {\n  setTimeout(() => console.log('never'), 9);\n  await null;\n  throw new Error('boom');\n}"))
	if o.err != nil || o.result.Load.Failed != 2 || strings.Count(o.log, "boom") != 2 || !strings.Contains(o.log, "script.js:5:") || strings.Contains(o.log, "never") {
		t.Errorf("%v, %+v: %s", o.err, o.result.Load, o.log)
	}
}

func TestTypeScript(t *testing.T) {
	o := passes(t, 2, map[string]string{
		"script.ts": "import { check } from 'k6';\nimport { Options } from 'k6/options';\nimport { double } from './util.ts';\n" +
			"interface Shape {\n  a: number;\n}\nexport const options: Options = { iterations: 1 };\nenum Color { Red, Green = 5, Blue }\n" +
			"export default function (): void {\n  check(1, { enum: () => Color.Blue === 6, double: () => double(2) === 4 });\n  const s: Shape = { a: 1 };\n  (s as any).b.length;\n}",
		"util.ts": "export const double = (n: number): number => n * 2;"})
	if !strings.Contains(o.log, "script.ts:12:") {
		t.Errorf("the place of the exception is lost: %s", o.log)
	}
}

func TestCommonJS(t *testing.T) {
	passes(t, 6, map[string]string{
		"script.js": `const { check } = require('k6'); const lib = require('./lib/a.js'); const { named } = require('./esm.js');
			exports.options = { iterations: 1 };
			exports.default = function () { check(lib, { value: (l) => l.value === 42, cycle: (l) => l.cycle === true, named: () => named === 'n', text: (l) => l.text === 'beside',
				once: (l) => require === undefined || l === lib, sloppy: () => (function () { return this; })() !== undefined }); };`,
		"lib/a.js": `exports.cycle = false; const b = require('./b.js'); exports.value = b.half * 2; exports.cycle = b.seen === false; exports.text = open('./t.txt');`,
		"lib/b.js": `exports.half = 21; exports.seen = require('./a.js').cycle;`, "lib/t.txt": "beside", "esm.js": `export const named = 'n';`})
}

func TestPositionsInCommonJS(t *testing.T) {
	o := run(t, script("exports.default = function () { throw new Error('here'); };"))
	if !strings.Contains(o.log, "script.js:1:39") {
		t.Errorf("want the exact column: %s", o.log)
	}
}

func TestOpenInModules(t *testing.T) {
	passes(t, 2, map[string]string{
		"script.js":     `import { text, read } from './lib/reader.js'; import { check } from 'k6'; const own = read('./t.txt'); export default function () { check(1, { module: () => text === 'lib', script: () => own === 'root' }); }`,
		"lib/reader.js": `export const text = open('./t.txt'); export const read = (n) => open(n);`, "t.txt": "root", "lib/t.txt": "lib"})
}

func TestEncodingAndCrypto(t *testing.T) {
	passes(t, 8, script(`
		import { check } from 'k6';
		import { b64encode, b64decode } from 'k6/encoding';
		import crypto from 'k6/crypto';
		export default function () {
			const d = crypto.createHash('md5'); d.update('ab'); d.update('c');
			check(1, {
				encode: () => b64encode('hé') === 'aMOp' && b64encode(new Uint8Array([1])) === 'AQ==', decode: () => b64decode('aMOp', 'std', 's') === 'hé',
				buffer: () => new Uint8Array(b64decode('AQI=')).join() === '1,2',
				sha: () => crypto.sha256('abc', 'hex').startsWith('ba7816bf'), update: () => d.digest('hex') === '900150983cd24fb0d6963f7d28e17f72',
				hmac: () => crypto.hmac('sha256', 'key', 'The quick brown fox jumps over the lazy dog', 'hex').startsWith('f7bc83f4'),
				random: () => crypto.randomBytes(7).byteLength === 7,
				text: () => new TextDecoder().decode(new TextEncoder().encode('é✓')) === 'é✓',
			});
		}`))
}

// doubler is a native module as others write them: metrics, a callback from
// another goroutine, and an error.
type doubler struct{}

var _ Module = doubler{}

func (doubler) Exports(h Host) Exports {
	metric, err := h.Meter().Metric("doubled", results.Counter, results.ContainsDefault)
	if err != nil {
		panic(h.Runtime().NewGoError(err))
	}
	rt := h.Runtime()
	return Exports{Named: map[string]any{
		"later": func(call sobek.FunctionCall) sobek.Value {
			n := call.Argument(0).ToInteger()
			promise, resolve, _ := rt.NewPromise()
			done := h.RegisterCallback()
			go func() {
				time.Sleep(time.Second)
				done(func() error {
					h.Meter().Record(metric, float64(n), map[string]string{"by": "two"})
					return resolve(2 * n)
				})
			}()
			return rt.ToValue(promise)
		},
	}}
}

func TestNativeModules(t *testing.T) {
	var o outcome
	files := script(`import { later } from 'k6/x/doubler'; import { check } from 'k6';
		export const options = { vus: 2, iterations: 4 };
		export default async function () { check(await later(21), { doubled: (n) => n === 42 }); }`)
	inBubble(t, func(ctx context.Context) {
		o = play(ctx, Config{Modules: map[string]Module{"k6/x/doubler": doubler{}}}, nil, files)
	})
	if o.err != nil || o.sums["checks"] != 4 || o.where("doubled", map[string]string{"by": "two", "scenario": "default"}) != 84 || o.took != 2*time.Second {
		t.Errorf("%v after %v: %v\n%s", o.err, o.took, o.sums, o.log)
	}
}

func TestGlobals(t *testing.T) {
	passes(t, 8, script(`import { check } from 'k6';
		const early = typeof __ITER;
		export default function () {
			const warn = console.warn;
			check(globalThis, {
				early: () => early === 'undefined', iter: () => __ITER === 0, vu: () => __VU === 1,
				same: (g) => g.setTimeout === setTimeout && g.console === console && console.warn === warn, global: (g) => global === g,
				unknown: () => typeof fetch === 'undefined', strict: () => { try { unheardOf = 1; } catch (e) { return e instanceof ReferenceError; } },
				replaced: (g) => { const old = setTimeout; g.setTimeout = 7; g.own = 8; const ok = setTimeout === 7 && own === 8; g.setTimeout = old; return ok && g.hasOwnProperty('own'); },
			});
		}`))
}
