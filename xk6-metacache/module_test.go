package metacache_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metachaos/metachaos/load/script"
	"github.com/metachaos/metachaos/targets"
	metacache "github.com/metachaos/metachaos/xk6-metacache"
)

func TestBadUseIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		`new Fleet(5)`:                             "the options are 5, want an object such as",
		`new Fleet('x')`:                           `the options are "x", want an object`,
		`new Fleet({ ttll: '60s' })`:               `unknown option "ttll" (did you mean "ttl"?)`,
		`new Fleet({ protection: 'none' })`:        `unknown option "protection" (did you mean "protections"?)`,
		`new Fleet({ zzzzzzzz: undefined })`:       `unknown option "zzzzzzzz" (known: backoffBase`,
		`new Fleet({ clients: '5' })`:              `clients: got "5", want a whole number`,
		`new Fleet({ clients: 1.5 })`:              "clients: got 1.5, want a whole number",
		`new Fleet({ clients: 0 })`:                "clients is 0, want 1 to",
		`new Fleet({ clients: 1e12 })`:             "clients is 1000000000000, want 1 to",
		`new Fleet({ streams: {} })`:               "streams: got an object of class Object, want a whole number",
		`new Fleet({ maxAttempts: true })`:         "maxAttempts: got true, want a whole number",
		`new Fleet({ maxRedirects: [] })`:          "maxRedirects: got an object of class Array, want a whole number",
		`new Fleet({ jitter: '0.2' })`:             `jitter: got "0.2", want a number`,
		`new Fleet({ jitter: NaN })`:               "jitter is NaN, want 0 to 1",
		`new Fleet({ jitter: 2 })`:                 "jitter is 2, want 0 to 1",
		`new Fleet({ ttl: 'soon' })`:               `ttl: got "soon", want a duration such as '60s' or a number of milliseconds`,
		`new Fleet({ ttl: true })`:                 "ttl: got true, want a duration",
		`new Fleet({ ttl: NaN })`:                  "ttl: got NaN, want a duration",
		`new Fleet({ ttl: 1e300 })`:                "ttl: got 1e+300, want a duration",
		`new Fleet({ ttl: -1 })`:                   "ttl is negative: -1ms",
		`new Fleet({ periodicPull: 'x' })`:         "periodicPull: got \"x\", want a duration",
		`new Fleet({ backoffBase: {} })`:           "backoffBase: got an object of class Object, want a duration",
		`new Fleet({ backoffMax: [] })`:            "backoffMax: got an object of class Array, want a duration",
		`new Fleet({ backoffMax: '1ms' })`:         "backoff is 5ms to 1ms",
		`new Fleet({ timeout: false })`:            "timeout: got false, want a duration",
		`new Fleet({ pullTimeout: '' })`:           `pullTimeout: got "", want a duration`,
		`new Fleet({ pullTimeout: 0 })`:            "pullTimeout is 0s, want more than 0",
		`new Fleet({ push: 1 })`:                   "push: got 1, want true or false",
		`new Fleet({ orderedPush: 'yes' })`:        `orderedPush: got "yes", want true or false`,
		`new Fleet({ gapPull: 0 })`:                "gapPull: got 0, want true or false",
		`new Fleet({ epochs: 'on' })`:              `epochs: got "on", want true or false`,
		`new Fleet({ refreshOnMismatch: 1 })`:      "refreshOnMismatch: got 1, want true or false",
		`new Fleet({ singleflight: 1 })`:           "singleflight: got 1, want true or false",
		`new Fleet({ warm: 'true' })`:              `warm: got "true", want true or false`,
		`new Fleet({ refresh: 1 })`:                "refresh: got 1, want a text",
		`new Fleet({ refresh: 'often' })`:          `refresh is "often", want "demand" or "background"`,
		`new Fleet({ readPreference: true })`:      "readPreference: got true, want a text",
		`new Fleet({ readPreference: 'nearest' })`: `readPreference is "nearest", want "primary" or "secondary"`,
		`new Fleet({ readConcern: 1 })`:            "readConcern: got 1, want a text",
		`new Fleet({ readConcern: 'snapshot' })`:   `readConcern is "snapshot", want "local"`,
		`new Fleet({ protections: 'some' })`:       `protections: got "some", want 'none' or 'recommended'`,
		`new Fleet({ protections: 1 })`:            "protections: got 1, want 'none' or 'recommended'",
		`metacache.Fleet({})`:                      "Fleet is a class: want new Fleet(options)",
		`new Fleet().read('item-1')`:               "a fleet cannot be used in init code",
		`new Fleet().client(0).scan()`:             "a fleet cannot be used in init code",
		`new Fleet({ clients: 3 }).client(3)`:      "client(i): got 3, want a whole number from 0 to 2",
		`new Fleet().client('1')`:                  `client(i): got "1", want a whole number from 0 to 99`,
		`new Fleet().client()`:                     "client(i): got undefined, want a whole number",
		`new Fleet().client(-1)`:                   "client(i): got -1, want",
		`new Fleet({ clients: __VU + 1 })`:         "VUs make fleet 1 with different options",
	} {
		o := play(t, setting{}, text+";\nexport const options = { vus: 2, iterations: 2 };\nexport default function () {}")
		if o.err == nil || !strings.Contains(o.err.Error(), want) || o.code() != script.ExitScript {
			t.Errorf("%s: exit status %d, %v; want %q", text, o.code(), o.err, want)
		}
		if o.started != 0 {
			t.Errorf("%s: the target was started", text)
		}
	}
}

func TestBadCallsThrow(t *testing.T) {
	calls := map[string]string{
		`new Fleet()`:                          "works in init code only",
		`fleet.read()`:                         "read(key): the key is undefined, want a text",
		`fleet.read(null)`:                     "read(key): the key is null",
		`fleet.read({})`:                       "read(key): the key is an object of class Object",
		`fleet.read(true)`:                     "read(key): the key is true",
		`fleet.write()`:                        "write(key, value): the key is undefined",
		`fleet.write('k', {})`:                 "the value is an object of class Object, want a text, an ArrayBuffer or a Uint8Array",
		`fleet.write('k', new Uint16Array(1))`: "the value is an object of class",
		`fleet.readMany()`:                     "readMany(keys): got undefined, want an array of keys",
		`fleet.readMany('abc')`:                `readMany(keys): got "abc", want an array of keys`,
		`fleet.readMany(['a', undefined])`:     "readMany(keys): keys[1] is undefined, want a text",
		`fleet.readMany({})`:                   "TypeError",
		`fleet.client(1).client(0)`:            "TypeError",
	}
	var body strings.Builder
	for call := range calls {
		fmt.Fprintf(&body, "try { %s; console.log(%q); } catch (e) { console.log(%q + e.name + ': ' + e.message); }\n", call, call+" -> nothing", call+" -> ")
	}
	o := play(t, setting{}, "const fleet = new Fleet();\nexport default function () {\n"+body.String()+"}")
	if o.err != nil {
		t.Fatal(o.err)
	}
	for call, want := range calls {
		if !slices.ContainsFunc(o.lines(), func(l string) bool { return strings.HasPrefix(l, call+" -> ") && strings.Contains(l, want) }) {
			t.Errorf("%s: want %q in\n%s", call, want, o.log.String())
		}
	}
	if len(o.events) != 0 {
		t.Errorf("events: %+v", o.events)
	}
}

// Every option arrives: what the fleet does shows it.
func TestOptionsArrive(t *testing.T) {
	o := play(t, setting{prepare: warmed(t)}, `
		const all = new Fleet({ clients: 2, ttl: '1m', jitter: 0.1, push: true, orderedPush: true, gapPull: true, epochs: true,
			refreshOnMismatch: true, periodicPull: '1h', singleflight: true, backoffBase: 5, backoffMax: '250ms', maxAttempts: 3,
			maxRedirects: -1, refresh: 'background', warm: true, readPreference: 'primary', readConcern: 'majority', timeout: '2s',
			pullTimeout: '1d', streams: 1, protections: 'recommended' });
		const none = new Fleet({ protections: 'none', ttl: undefined, jitter: null });
		const some = new metacache.Fleet({ epochs: true, protections: 'none' });
		class Mine extends Fleet {}
		const mine = new Mine({ timeout: 0.5 });
		export default function () {
			const warm = all.read('item-1'), bare = none.read('item-1'), partly = some.read('item-1');
			console.log([warm.cache, warm.node, warm.epochSent, bare.cache, bare.epochSent, partly.epochSent].join(' '));
			console.log([all instanceof Fleet, mine instanceof Mine, Fleet === metacache.Fleet, Fleet.name, ...Object.keys(all).sort()].join());
		}`)
	lines := o.lines()
	if o.err != nil || len(lines) != 2 || !strings.HasPrefix(lines[0], "hit s") || !strings.HasSuffix(lines[0], "-0 1 miss 0 1") ||
		lines[1] != "true,true,true,Fleet,client,read,readMany,scan,write" {
		t.Errorf("%v: %q", o.err, lines)
	}
	if o.module.Fleets() != 4 || o.started != 3 { // the last was never used
		t.Errorf("%d fleets made, the target was asked for %d times", o.module.Fleets(), o.started)
	}
	clients := map[string]bool{}
	for _, e := range o.events {
		clients[e.Client] = true
	}
	for _, want := range []string{"f1-0", "f2-0", "f3-0"} {
		if !clients[want] {
			t.Errorf("clients %v, want %s among them", clients, want)
		}
	}
}

// All VUs share one fleet, and its clients take turns.
func TestVUsShareTheFleet(t *testing.T) {
	o := play(t, setting{prepare: warmed(t)}, `
		export const options = { vus: 3, iterations: 12 };
		const fleet = new Fleet({ clients: 4 });
		export default function () { fleet.read('item-1'); }`)
	reads := map[string]int{}
	for _, e := range o.events {
		if e.Verb == targets.EventRead {
			reads[e.Client]++
		}
	}
	if o.err != nil || o.started != 1 || len(reads) != 4 || reads["f1-0"] != 3 || reads["f1-3"] != 3 {
		t.Errorf("%v: the target was asked for %d times, reads by client: %v", o.err, o.started, reads)
	}
}

// The seed decides which nodes are asked, and each fleet has dice of its own.
func TestTheSeedRepeats(t *testing.T) {
	nodes := func(seed uint64) (first, second string) {
		o := play(t, setting{prepare: warmed(t), seed: seed}, `
			const one = new Fleet({ clients: 1 }), two = new Fleet({ clients: 1 });
			const asked = (f) => f.readMany(Array(30).fill('item-1')).map((r) => r.node).join();
			export default function () { console.log(asked(one)); console.log(asked(two)); }`)
		if o.err != nil || len(o.lines()) != 2 {
			t.Fatal(o.err, o.log.String())
		}
		return o.lines()[0], o.lines()[1]
	}
	a, b := nodes(7)
	again, _ := nodes(7)
	other, _ := nodes(8)
	third, _ := nodes(1000)
	if a != again || a == third || a == b || a == other {
		t.Errorf("seed 7: %s and %s, once more %s\nseed 8: %s\nseed 1000: %s", a, b, again, other, third)
	}
}

func TestOneClient(t *testing.T) {
	o := play(t, setting{prepare: warmed(t)}, `
		const fleet = new Fleet({ clients: 4 });
		const two = fleet.client(2); // may be made in init code
		export default function () {
			for (let i = 0; i < 3; i++) two.read('item-1');
			fleet.client(2).write('item-1', 'x');
			fleet.client(2).scan();
			fleet.client(2).readMany(['item-1', 'item-2']);
		}`)
	if o.err != nil || len(o.events) == 0 {
		t.Fatal(o.err)
	}
	for _, e := range o.events {
		if e.Client != "f1-2" && e.Verb != targets.EventPush {
			t.Errorf("an event of another client: %+v", e)
		}
	}
}

// A target that cannot start fails every use, and is not started again and
// again. A start that was cut short is no such failure.
func TestStartingFails(t *testing.T) {
	failing := func(context.Context) (targets.Target, error) { return nil, errors.New("no target to be had") }
	o := play(t, setting{target: failing}, `
		export const options = { iterations: 3 };
		const fleet = new Fleet();
		export default function () { fleet.read('item-1'); }`)
	if strings.Count(o.log.String(), "no target to be had") != 3 || o.started != 1 {
		t.Errorf("asked for the target %d times: %s", o.started, o.log.String())
	}

	// While one VU waits for the target, another gives up in time.
	slow := func(ctx context.Context) (targets.Target, error) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(5 * time.Second):
			return instant{}, nil
		}
	}
	o = play(t, setting{target: slow}, `
		export const options = { scenarios: {
			brief: { executor: 'per-vu-iterations', vus: 2, iterations: 1, maxDuration: '1s', gracefulStop: '0s' },
			later: { executor: 'per-vu-iterations', vus: 1, iterations: 1, startTime: '10s' } } };
		const fleet = new Fleet({ push: false });
		export default function () { console.log(fleet.read('item-1').ok); }`)
	if o.err != nil || o.started != 2 || !slices.Contains(o.lines(), "true") {
		t.Errorf("%v: asked for the target %d times: %s", o.err, o.started, o.log.String())
	}
}

func TestLifeOfTheModule(t *testing.T) {
	m := metacache.New(metacache.Env{Base: targets.NewBase(), Target: func(context.Context) (targets.Target, error) { return instant{}, nil }})
	load := func(text string) *script.Program {
		t.Helper()
		p, err := script.Load(t.Context(), source(text), script.Config{Modules: map[string]script.Module{metacache.ImportPath: m}})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := load(`const fleet = new Fleet({ push: false, warm: true });
		export default function () { if (!fleet.read('item-1').ok) throw new Error('not served'); }
		export function handleSummary() { fleet.read('item-1'); }`)
	if err := m.Start(t.Context()); err != nil || m.Fleets() != 1 {
		t.Fatalf("%d fleets, %v", m.Fleets(), err)
	}
	res, err := script.Execute(t.Context(), p, script.RunConfig{Recorder: nothing{}, Clock: targets.NewBase()})
	if err != nil || res.Load.Failed != 0 {
		t.Errorf("%v: %+v", err, res.Load)
	}
	for range 2 {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := p.HandleSummary(t.Context(), script.HandleSummaryData{}); err == nil || !strings.Contains(err.Error(), "the run is over") {
		t.Errorf("after the run: %v", err)
	}
	if err := m.Start(t.Context()); err == nil {
		t.Error("a fleet starts after the run")
	}
}

// A start that fails says which fleet could not work on the target.
func TestStartTellsWhatTheTargetLacks(t *testing.T) {
	m := metacache.New(metacache.Env{Base: targets.NewBase(), Target: func(context.Context) (targets.Target, error) { return instant{}, nil }})
	if _, err := script.Load(t.Context(), source("new Fleet(); export default function () {}"),
		script.Config{Modules: map[string]script.Module{metacache.ImportPath: m}}); err != nil {
		t.Fatal(err)
	}
	if err := m.Start(t.Context()); err == nil || !strings.Contains(err.Error(), `target "instant" sends no pushes; switch push off`) {
		t.Errorf("got %v", err)
	}
}
