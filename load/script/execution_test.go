package script

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metachaos/metachaos/load"
)

// inBubble calls f in a bubble of virtual time, with the bubble's context.
func inBubble(t *testing.T, f func(ctx context.Context)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t.Context()) })
}

func TestStoppingRunsTeardown(t *testing.T) {
	text := script(`import { sleep } from 'k6';
		export const options = { vus: 2, duration: '20s' };
		export default function () { try { sleep(3); console.log('slept'); } finally { console.log('finally'); } }
		export function teardown() { console.log('torn down'); }`)
	var o outcome
	inBubble(t, func(ctx context.Context) {
		ctx, cancel := context.WithTimeoutCause(ctx, 4*time.Second, errors.New("signal"))
		defer cancel()
		o = play(ctx, Config{}, nil, text)
	})
	if o.code() != ExitInterrupted || o.took != 4*time.Second || o.result.Load.Completed != 2 || o.result.Load.Interrupted != 2 {
		t.Errorf("exit status %d after %v: %+v, %v", o.code(), o.took, o.result.Load, o.err)
	}
	if strings.Count(o.log, "slept") != 2 || !strings.Contains(o.log, "torn down") || o.sums["iterations"] != 2 {
		t.Errorf("log: %s", o.log)
	}
}

func TestGracefulStopInterrupts(t *testing.T) {
	o := run(t, script(`import { sleep } from 'k6';
		import { Counter } from 'k6/metrics';
		const started = new Counter('started');
		export const options = { scenarios: { s: { executor: 'constant-vus', vus: 2, duration: '1s', gracefulStop: '500ms' } } };
		export default function () { started.add(1); sleep(10); started.add(100); }`))
	if o.err != nil || o.sums["started"] != 2 || o.counts["iterations"]+o.counts["iteration_duration"] != 0 || o.result.Load.Interrupted != 2 || o.took != 1500*time.Millisecond {
		t.Errorf("%v after %v: %v, %+v", o.err, o.took, o.sums, o.result.Load)
	}
}

func TestABusyLoopIsInterrupted(t *testing.T) {
	o := play(t.Context(), Config{}, nil, script(`export const options = { scenarios: { s: { executor: 'constant-vus', vus: 2, duration: '1s', gracefulStop: '0s' } } };
		export default function () { for (;;) {} }`))
	if o.err != nil || o.result.Load.Interrupted != 2 || o.took > 5*time.Second {
		t.Errorf("%v after %v: %+v", o.err, o.took, o.result.Load)
	}
}

// crossedAfter is a judge that finds a threshold crossed from an instant on.
type crossedAfter time.Duration

var _ Judge = crossedAfter(0)

func (c crossedAfter) Crossed(elapsed time.Duration) string {
	if elapsed < time.Duration(c) {
		return ""
	}
	return "errs: count<3"
}

func TestACrossedThresholdAborts(t *testing.T) {
	for _, c := range []struct {
		teardown string
		code     int
	}{{"console.log('torn down')", ExitThreshold}, {"throw new Error('worse')", ExitScript}} {
		var o outcome
		inBubble(t, func(ctx context.Context) {
			o = play(ctx, Config{}, crossedAfter(3*time.Second), script(`import { sleep } from 'k6';
				export const options = { vus: 1, duration: '60s' };
				export default function () { sleep(0.5); }
				export function teardown() { `+c.teardown+`; }`))
		})
		if o.code() != c.code || o.took != 4*time.Second {
			t.Errorf("teardown %s: exit status %d after %v, want %d after 4s: %v", c.teardown, o.code(), o.took, c.code, o.err)
		}
	}
}

func TestArrivalsThatFindNoVUAreDropped(t *testing.T) {
	o := run(t, script(`import { sleep } from 'k6';
		export const options = { scenarios: { s: { executor: 'constant-arrival-rate', rate: 20, duration: '1s', preAllocatedVUs: 1, maxVUs: 1, gracefulStop: '2s' } } };
		export default function () { sleep(0.62); }`))
	if o.err != nil || o.sums["iterations"] != 2 || o.where("dropped_iterations", map[string]string{"scenario": "s"}) != 18 || o.counts["iteration_lateness"] != 2 {
		t.Errorf("%v: %v", o.err, o.sums)
	}
}

func TestScenariosHaveTheirOwnEnvironment(t *testing.T) {
	o := run(t, script(`import { Counter } from 'k6/metrics';
		const c = new Counter('calls');
		export const options = { systemTags: ['scenario', 'vu'], scenarios: {
			one: { executor: 'per-vu-iterations', vus: 1, iterations: 2, exec: 'first', env: { WHO: 'uno' }, tags: { lane: 'x' } },
			two: { executor: 'shared-iterations', vus: 1, iterations: 3, exec: 'second', env: { WHO: 'dos' }, tags: { lane: 'y' }, startTime: '11m' } } };
		export function first() { c.add(1); console.log('first-' + __ENV.WHO + '-' + __ITER); }
		export function second() { c.add(10); console.log('second-' + __ENV.WHO + '-' + __ITER); }`))
	if o.err != nil || o.where("calls", map[string]string{"lane": "x", "scenario": "one", "vu": "1"}) != 2 || o.where("calls", map[string]string{"lane": "y", "scenario": "two"}) != 30 {
		t.Errorf("%v: %v", o.err, o.sums)
	}
	for _, want := range []string{"first-uno-1", "second-dos-2", "second-dos-4"} { // the VU counts on in the second scenario
		if !strings.Contains(o.log, want) {
			t.Errorf("the log lacks %q: %s", want, o.log)
		}
	}
	for _, s := range o.samples {
		if _, ok := s.Tags.Get("group"); ok {
			t.Fatalf("a sample of %s carries a system tag that was not asked for", s.Metric.Name)
		}
	}
}

func TestOverrides(t *testing.T) {
	two, five, span := int64(2), int64(5), 3*time.Second
	files := script(`import { sleep } from 'k6';
		export const options = { vus: 1, iterations: 1, tags: { from: 'script', only: 'script' } };
		export default function () { sleep(1.1); console.log('who=' + __ENV.WHO); }`)
	for name, c := range map[string]struct {
		over  Overrides
		under Layer
		want  float64 // iterations
		tag   string
	}{
		"none":       {Overrides{}, Layer{"tags": []byte(`{"from":"file"}`), "iterations": []byte("7")}, 1, "script"},
		"vus only":   {Overrides{VUs: &two, Iterations: &five}, nil, 5, "script"},
		"duration":   {Overrides{VUs: &two, Duration: &span}, nil, 6, "script"},
		"stages":     {Overrides{Stages: []load.Stage{{Duration: span, Target: 1}}}, nil, 3, "script"},
		"tags, env":  {Overrides{Tags: map[string]string{"from": "flag"}, Env: map[string]string{"WHO": "flag"}}, nil, 1, "flag"},
		"any option": {Overrides{Others: Layer{"iterations": []byte("4")}}, nil, 4, "script"},
	} {
		var o outcome
		inBubble(t, func(ctx context.Context) {
			o = play(ctx, Config{Overrides: c.over, Defaults: c.under, Env: map[string]string{"WHO": "env"}}, nil, files)
		})
		if o.err != nil || o.sums["iterations"] != c.want || o.where("iterations", map[string]string{"from": c.tag}) != c.want {
			t.Errorf("%s: %v: %v iterations, want %v tagged %s", name, o.err, o.sums["iterations"], c.want, c.tag)
		}
		if c.tag == "flag" && (!strings.Contains(o.log, "who=flag") || o.where("iterations", map[string]string{"only": "script"}) != 0) {
			t.Errorf("%s: log: %s", name, o.log)
		}
	}
}

func TestHandleSummary(t *testing.T) {
	o := run(t, script(`export function setup() { return { s: 1 }; }
		export default function () {}
		export function handleSummary(d) { return { stdout: d.metrics.x.values['p(95)'] + ' ' + d.setup_data.s + ' ' + d.state.testRunDurationMs, 'b.bin': new Uint8Array([1, 2]).buffer, 'o.json': { a: 1 } }; }`))
	if o.err != nil {
		t.Fatal(o.err)
	}
	files, err := o.program.HandleSummary(t.Context(), HandleSummaryData{SetupData: o.result.SetupData, Duration: 1500 * time.Millisecond,
		Metrics: map[string]any{"x": map[string]any{"values": map[string]float64{"p(95)": 7}}}})
	if err != nil || string(files["stdout"]) != "7 1 1500" || string(files["b.bin"]) != "\x01\x02" || string(files["o.json"]) != `{"a":1}` {
		t.Errorf("%q, %v", files, err)
	}
}

func TestSetupDataBelongsToEachVU(t *testing.T) {
	o := run(t, script(`export const options = { vus: 1, iterations: 3 };
		export function setup() { return { n: 0, gone: undefined, when: new Date(5) }; }
		export default function (d) { d.n += 1; console.log('n=' + d.n + ' ' + d.gone + ' ' + d.when); }
		export function teardown(d) { console.log('end=' + d.n); }`))
	if o.err != nil || !strings.Contains(o.log, "n=3 null 1970-01-01T00:00:00.005Z") || !strings.Contains(o.log, "end=0") {
		t.Errorf("%v: %s", o.err, o.log)
	}
}

func TestShortIterationsArePadded(t *testing.T) {
	o := run(t, script(`export const options = { iterations: 3, minIterationDuration: '2s' }; export default function () {}`))
	if o.err != nil || o.took != 6*time.Second || o.sums["iteration_duration"] != 0 {
		t.Errorf("%v after %v: %v", o.err, o.took, o.sums)
	}
}

func TestLiveTellsThePhase(t *testing.T) {
	inBubble(t, func(ctx context.Context) {
		p, err := Load(ctx, source(script(`import { sleep } from 'k6';
			export const options = { vus: 3, duration: '10s' };
			export function setup() { sleep(2); }
			export default function () { sleep(1.5); }
			export function teardown() { sleep(2); }`)), Config{})
		if err != nil {
			t.Fatal(err)
		}
		x := NewExecution(p, RunConfig{Recorder: &collector{sums: map[string]float64{}, counts: map[string]int{}}, Clock: sinceStart{time.Now()}})
		done := make(chan error, 1)
		go func() { _, err := x.Run(ctx); done <- err }()
		for _, step := range []struct {
			wait   time.Duration
			phase  Phase
			active int
		}{{time.Second, PhaseSetup, 0}, {2500 * time.Millisecond, PhaseRunning, 3}, {9500 * time.Millisecond, PhaseTeardown, 0}, {9 * time.Second, PhaseDone, 0}} {
			time.Sleep(step.wait)
			if l := x.Live(); l.Phase != step.phase || l.Load.Active != step.active || l.Load.Initialized != 3 {
				t.Errorf("after a further %v: %+v, want %s with %d active", step.wait, l, step.phase, step.active)
			}
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
