package script

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dlclark/regexp2"
)

func TestDeepSourcesAreRefused(t *testing.T) {
	deep := func(n int, open, middle, end string) string {
		return "export default function () {}\nlet x = " + strings.Repeat(open, n) + middle + strings.Repeat(end, n) + ";"
	}
	for name, c := range map[string]struct {
		file, text string
		refused    bool
	}{
		"100,000 brackets":       {"script.js", deep(100_000, "[", "", "]"), true},
		"brackets in TypeScript": {"script.ts", deep(100_000, "(", "1", ")"), true},
		"objects":                {"script.js", deep(50_000, "{a:", "1", "}"), true},
		"templates":              {"script.js", deep(50_000, "`${", "1", "}`"), true},
		"prefixes":               {"script.js", deep(200_000, "!", "1", ""), true},
		"functions":              {"script.js", deep(200_000, "a=>", "1", ""), true},
		"conditions":             {"script.js", deep(200_000, "1?1:", "1", ""), true},
		"words":                  {"script.js", deep(200_000, "typeof ", "1", ""), true},
		"what people write":      {"script.js", deep(500, "[", "1", "]"), false},
		"brackets within text":   {"script.js", deep(1, `"`+strings.Repeat("[", 100_000)+`"`, "", ""), false},
		"brackets in a comment":  {"script.js", "export default function () {}\n/*" + strings.Repeat("[", 100_000) + "*/", false},
		"brackets in a template": {"script.js", deep(1, "`"+strings.Repeat("[", 100_000)+"`", "", ""), false},
		"a regular expression":   {"script.js", deep(1, `/[/"(]/.test("`+strings.Repeat("(", 100_000)+`")`, "", ""), false},
		"a long list":            {"script.js", deep(1, "["+strings.Repeat("-1+2,", 100_000)+"]", "", ""), false},
		"many statements":        {"script.js", "export default function () {}\n" + strings.Repeat("x = [1];\n", 20_000) + "var x;", false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(t.Context(), source(map[string]string{c.file: c.text}), Config{})
			if refused := err != nil && strings.Contains(err.Error(), "nested more than"); refused != c.refused {
				t.Errorf("got %.200v, refused: %v", err, refused)
			}
			if c.refused && !strings.Contains(err.Error(), c.file+":2:") {
				t.Errorf("the error names no place: %v", err)
			}
		})
	}
}

func FuzzNesting(f *testing.F) {
	for _, seed := range []string{"a={b:[`${c}`]}", "/[/]/.x/2//", "'\\", "`${`${", "))}]", "a=>b=>c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := nestingScanner{text: text, links: []int{0}}
		s.scan()
		sum := len(s.open) * bracketCost
		for _, n := range s.links {
			sum += n
		}
		if sum != s.cost || s.at < len(text) {
			t.Errorf("cost %d, want %d; read %d of %d", s.cost, sum, s.at, len(text))
		}
	})
}

// A match that would take years must not keep a run from ending.
func TestRunawayRegexp(t *testing.T) {
	before := regexp2.DefaultMatchTimeout
	LimitRegexps(300 * time.Millisecond)
	defer LimitRegexps(before)
	o := play(t.Context(), Config{}, nil, script(`
		export const options = { scenarios: { s: { executor: 'constant-vus', vus: 1, duration: '1s', gracefulStop: '0s' } } };
		export default function () { /^(?=a)(a+)+$/.test('a'.repeat(60) + 'b'); }`))
	if o.err != nil || o.took > 10*time.Second {
		t.Errorf("error %v after %v", o.err, o.took)
	}
}

func TestBaseMode(t *testing.T) {
	text := script(`export default function () { console.log('it is ' + typeof global + ',' + typeof globalThis + ',' + ('global' in globalThis)); }`)
	for base, want := range map[bool]string{false: "it is object,object,true", true: "it is undefined,object,false"} {
		synctest.Test(t, func(t *testing.T) {
			if o := play(t.Context(), Config{BaseMode: base}, nil, text); o.err != nil || !strings.Contains(o.log, want) {
				t.Errorf("base %v: error %v, log %s", base, o.err, o.log)
			}
		})
	}
}

func TestConsoleGoesWhereItIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		console := &syncBuffer{}
		o := play(t.Context(), Config{Console: slog.New(slog.NewTextHandler(console, nil))}, nil,
			script(`export default function () { console.log('to the console'); throw new Error('to the log'); }`))
		if o.err != nil || !strings.Contains(console.String(), "to the console") || strings.Contains(o.log, "to the console") || !strings.Contains(o.log, "to the log") {
			t.Errorf("error %v\nconsole %s\nlog %s", o.err, console, o.log)
		}
	})
}

func TestModulesThatAreNotHereNameAnAlternative(t *testing.T) {
	for name, want := range map[string]string{
		"k6/browser":                 "k6/http",
		"k6/experimental/websockets": "k6/websockets",
		"k6/experimental/redis":      "k6/x/metacache",
		"k6/experimental/other":      "experimental modules",
		"k6/crypto/x509":             "importKey",
		"k6/x/sql":                   "extensions",
		"k6/metricz":                 `did you mean "k6/metrics"?`,
	} {
		_, err := Load(t.Context(), source(script("import x from '"+name+"'; export default function () {}")), Config{})
		if o := (outcome{err: err}); o.code() != ExitScript || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want one line that says %q", name, err, want)
		}
	}
}

func TestRemoteModules(t *testing.T) {
	mux := http.NewServeMux()
	serve := func(path, code string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(code)) })
	}
	serve("/lib/index.js", `export { twice } from './math.js'; export const where = import.meta.url; export const files = () => open('./x.txt');`)
	serve("/lib/math.js", `export const twice = (n) => 2 * n;`)
	mux.Handle("/away.js", http.RedirectHandler("http://192.0.2.1/x.js", http.StatusFound))
	server := httptest.NewServer(mux)
	defer server.Close()
	load := func(path string, allow bool) outcome {
		return play(t.Context(), Config{AllowRemote: allow}, nil, script(`
			import { twice, where } from '`+server.URL+path+`';
			export default function () { console.log('four is ' + twice(2) + ' from ' + where); }`))
	}
	if o := load("/lib/index.js", true); o.err != nil || !strings.Contains(o.log, "four is 4 from "+server.URL+"/lib/index.js") {
		t.Errorf("error %v, log %s", o.err, o.log)
	}
	for path, want := range map[string]string{"/lib/none.js": "404", "/away.js": "want an https address"} {
		if o := load(path, true); o.code() != ExitScript || !strings.Contains(o.err.Error(), want) || !strings.Contains(o.err.Error(), path) {
			t.Errorf("%s: got %v, want %q", path, o.err, want)
		}
	}
	if o := load("/lib/index.js", false); o.code() != ExitScript || !strings.Contains(o.err.Error(), "./index.js") {
		t.Errorf("without permission: got %v, want a hint to save the file", o.err)
	}
}

func TestFetchRefuses(t *testing.T) {
	large := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(make([]byte, remoteSize+1)) // the client leaves in the middle
	}))
	defer large.Close()
	large.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	for address, want := range map[string]string{
		"http://example.com/x.js": "want an https address",
		"ftp://127.0.0.1/x.js":    "want an https address",
		large.URL:                 "certificate", // unknown to this host
		strings.Replace(large.URL, "https", "http", 1): "400", // TLS is expected there
	} {
		if _, err := fetch(t.Context(), address); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", address, err, want)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := fetch(ended, "https://127.0.0.1:1/x.js"); err == nil {
		t.Error("an ended context: want an error")
	}
}

func TestExecutionSegments(t *testing.T) {
	text := script(`
		import exec from 'k6/execution';
		import { sleep } from 'k6';
		export const options = { scenarios: { s: { executor: 'shared-iterations', vus: 2, iterations: 10 } } };
		export default function () { console.log('made ' + exec.scenario.iterationInTest + '/' + exec.scenario.iterationInInstance + ' by ' + exec.vu.idInTest + ';'); sleep(1); }`)
	segment := func(t *testing.T, segment, sequence string) (o outcome) {
		others := Layer{"executionSegment": []byte(`"` + segment + `"`)}
		if sequence != "" {
			others["executionSegmentSequence"] = []byte(`"` + sequence + `"`)
		}
		synctest.Test(t, func(t *testing.T) {
			o = play(t.Context(), Config{Overrides: Overrides{Others: others}}, nil, text)
		})
		return o
	}
	for which, want := range map[string][]string{
		"0:1/2": {"made 0/0 by 1;", "made 2/1 by 1;", "made 4/2 by 1;", "made 6/3 by 1;", "made 8/4 by 1;"},
		"1/2:1": {"made 1/0 by 2;", "made 3/1 by 2;", "made 5/2 by 2;", "made 7/3 by 2;", "made 9/4 by 2;"},
	} {
		o := segment(t, which, "0,1/2,1")
		for _, line := range want {
			if !strings.Contains(o.log, line) {
				t.Errorf("%s: log lacks %q:\n%s", which, line, o.log)
			}
		}
		if o.err != nil || o.sums["iterations"] != 5 {
			t.Errorf("%s: error %v, %v iterations", which, o.err, o.sums["iterations"])
		}
	}
	if o := segment(t, "1/3:2/3", "0,1/2,1"); o.code() != ExitConfig || !strings.Contains(o.err.Error(), "options.executionSegment") {
		t.Errorf("a segment that is not of the sequence: got %v", o.err)
	}
	idle := segment(t, "1/10:1/5", "0,1/10,1/5,1")
	if idle.err != nil || idle.counts["iterations"] != 0 || !strings.Contains(idle.log, "nothing to do") {
		t.Errorf("a segment without a VU: error %v, log %s", idle.err, idle.log)
	}
}
