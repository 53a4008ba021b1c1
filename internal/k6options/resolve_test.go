package k6options

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/metachaos/metachaos/load/script"
)

// resolve runs a command line over an environment and files.
func resolve(t *testing.T, args, environ []string, files map[string]string) (Resolved, error) {
	t.Helper()
	fs := pflag.NewFlagSet("run", pflag.ContinueOnError)
	s := Flags(fs)
	if err := fs.Parse(args); err != nil {
		return Resolved{}, fmt.Errorf("parse: %w", err)
	}
	return s.Resolve(environ, readFrom(files))
}

func readFrom(files map[string]string) func(string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		text, ok := files[path]
		if !ok {
			return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
		}
		return []byte(text), nil
	}
}

func shown(l script.Layer) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(l)) {
		all = append(all, name+"="+string(l[name]))
	}
	return strings.Join(all, " ")
}

func TestOptionsFromFlagsAndEnvironment(t *testing.T) {
	for _, c := range []struct {
		name, args, env, want string
	}{
		{"nothing", "", "", ""},
		{"load", "-u 3 -i 9", "", "iterations=9 vus=3"},
		{"stages, as flags and in one", "-s 5s:10 --stage 1m:0,500ms:3", "",
			`stages=[{"duration":"5s","target":10},{"duration":"1m0s","target":0},{"duration":"500ms","target":3}]`},
		{"stages in a variable", "", "K6_STAGES=5s:10,10s:20", `stages=[{"duration":"5s","target":10},{"duration":"10s","target":20}]`},
		{"days", "-d 1d2h", "", `duration="26h0m0s"`},
		// a number is milliseconds in a variable, as in a script
		{"milliseconds", "", "K6_DURATION=1500", `duration="1.5s"`},
		{"a flag wins", "-u 4", "K6_VUS=3 METACHAOS_VUS=2", "vus=4"},
		{"ours wins over k6's", "", "K6_VUS=3 METACHAOS_VUS=2", "vus=2"},
		// one way to say how much load replaces every other of a lower layer
		{"a shape replaces a shape", "--iterations 2", "K6_DURATION=5s K6_VUS=2", "iterations=2 vus=2"},
		{"-e sets options too", "-e K6_ITERATIONS=3 -e OTHER=x", "K6_ITERATIONS=7", "iterations=3"},
		{"an empty variable sets nothing", "", "K6_VUS= K6_TAGS=", ""},
		{"switches", "-w --no-setup --no-teardown=false", "K6_NO_CONNECTION_REUSE=true K6_NO_TEARDOWN=1",
			"noConnectionReuse=true noSetup=true noTeardown=false throw=true"},
		{"lists", "--system-tags status,method --system-tags vu --summary-trend-stats p(99),avg", "K6_SUMMARY_TREND_STATS=min,max",
			`summaryTrendStats=["p(99)","avg"] systemTags=["status","method","vu"]`},
		{"no system tags", "--system-tags=", "", "systemTags=[]"},
		{"tags", "--tag a=b --tag c=x=y", "K6_TAGS=z:1", `tags={"a":"b","c":"x=y"}`},
		{"tags in a variable", "", "K6_TAGS=a:b,c=d", `tags={"a":"b","c":"d"}`},
		{"http", "--max-redirects 3 --batch 5 --batch-per-host 2 --rps 9 --user-agent me/1 --discard-response-bodies --insecure-skip-tls-verify --no-vu-connection-reuse",
			"", `batch=5 batchPerHost=2 discardResponseBodies=true insecureSkipTLSVerify=true maxRedirects=3 noVUConnectionReuse=true rps=9 userAgent="me/1"`},
		{"debugging of http", "--http-debug", "", `httpDebug="headers"`},
		{"debugging of http in full", "--http-debug=full", "", `httpDebug="full"`},
		{"network", "--blacklist-ip 10.0.0.0/8,127.0.0.1 --block-hostnames *.bad.example --dns ttl=5m,select=random --local-ips 10.0.0.1-10.0.0.9",
			"", `blacklistIPs=["10.0.0.0/8","127.0.0.1"] blockHostnames=["*.bad.example"] dns={"select":"random","ttl":"5m"} localIPs="10.0.0.1-10.0.0.9"`},
		{"segments", "--execution-segment 0:1/4 --execution-segment-sequence 0,1/4,1", "",
			`executionSegment="0:1/4" executionSegmentSequence="0,1/4,1"`},
		{"time limits", "--min-iteration-duration 2s", "K6_SETUP_TIMEOUT=5s K6_TEARDOWN_TIMEOUT=100",
			`minIterationDuration="2s" setupTimeout="5s" teardownTimeout="100ms"`},
		{"no thresholds", "--no-thresholds", "", "thresholds={}"},
		{"paused", "-p --summary-time-unit us", "", `paused=true summaryTimeUnit="us"`},
	} {
		r, err := resolve(t, strings.Fields(c.args), strings.Fields(c.env), nil)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := shown(r.Overrides.Others); got != c.want {
			t.Errorf("%s: got  %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestRuntimeSettings(t *testing.T) {
	r, err := resolve(t, []string{"-o", "json=a.json", "--out", "csv=fileName=b.csv,timeFormat=unix", "--summary-mode", "full", "--summary-export", "s.json", "-q",
		"--no-color", "--compatibility-mode", "base", "--secret-source=file=s.env", "--allow-remote", "-l", "--console-output", "c.log", "-v",
		"--log-format", "raw", "--log-output", "file=my.log,level=warning", "--address", "x", "--no-usage-report"}, []string{"K6_OUT=json"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Log{Output: "file", File: "my.log", Format: "raw", Level: 4, Console: "c.log"}
	if r.Log != want {
		t.Errorf("log = %+v, want %+v", r.Log, want)
	}
	if !slices.Equal(r.Outputs, []string{"json=a.json", "csv=fileName=b.csv,timeFormat=unix"}) || r.SummaryMode != "full" || r.SummaryExport != "s.json" ||
		!r.Quiet || !r.NoColor || !r.BaseMode || !r.AllowRemote || !r.Linger || !slices.Equal(r.SecretSources, []string{"file=s.env"}) || len(r.Warnings) != 1 {
		t.Errorf("got %+v", r)
	}
	r, err = resolve(t, nil, []string{"K6_OUT=json=a.json,csv", "K6_NO_SUMMARY=true", "NO_COLOR=1", "K6_LOG_OUTPUT=stdout"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.Outputs, []string{"json=a.json", "csv"}) || r.SummaryMode != "disabled" || !r.NoColor || r.Log.Output != "stdout" {
		t.Errorf("got %+v", r)
	}
	if r, err = resolve(t, nil, nil, nil); err != nil || r.SummaryMode != "compact" || r.Log != (Log{Output: "stderr", Format: "text"}) {
		t.Errorf("by default: %+v, %v", r, err)
	}
}

func TestVariablesOfScripts(t *testing.T) {
	r, err := resolve(t, []string{"-e", "A=flag", "--env", "B=x=y z,w", "-e", "BARE"}, []string{"A=system", "C=system", "BARE=system", "junk"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{"A": "flag", "B": "x=y z,w", "BARE": ""}; !maps.Equal(r.Overrides.Env, want) {
		t.Errorf("-e gives %v, want %v", r.Overrides.Env, want)
	}
	if want := map[string]string{"A": "system", "C": "system", "BARE": "system"}; !maps.Equal(r.Env, want) {
		t.Errorf("the environment is %v, want %v", r.Env, want)
	}
	if v, ok := r.Lookup("A"); !ok || v != "flag" {
		t.Errorf("Lookup(A) = %q, %v", v, ok)
	}
	r, err = resolve(t, []string{"--include-system-env-vars=false", "-e", "A=flag"}, []string{"C=system", "K6_VUS=2"}, nil)
	if err != nil || len(r.Env) != 0 || r.Overrides.Env["A"] != "flag" || shown(r.Overrides.Others) != "vus=2" {
		t.Errorf("without the system's variables: %+v, %v", r, err)
	}
}

func TestConfigurationFile(t *testing.T) {
	const home = "/home/me/.config/k6/config.json"
	files := map[string]string{home: `{"vus": 3, "out": ["json=a"], "linger": true, "noUsageReport": true}`, "c.json": `{"tags": {"a": "b"}}`,
		"/xdg/k6/config.json": `{"batch": 1}`}
	for _, c := range []struct{ name, args, env, want string }{
		{"at its default place", "", "HOME=/home/me", "vus=3"},
		{"where the desktop standard says", "", "HOME=/home/me XDG_CONFIG_HOME=/xdg", "batch=1"},
		{"asked for", "-c c.json", "HOME=/home/me", `tags={"a": "b"}`},
		{"asked for by a variable", "", "HOME=/home/me K6_CONFIG=c.json", `tags={"a": "b"}`},
		{"none", "", "HOME=/nowhere", ""},
		{"no home", "", "", ""},
	} {
		r, err := resolve(t, strings.Fields(c.args), strings.Fields(c.env), files)
		if err != nil || shown(r.Defaults) != c.want {
			t.Errorf("%s: got %s, %v, want %s", c.name, shown(r.Defaults), err, c.want)
		}
	}
	r, err := resolve(t, nil, []string{"HOME=/home/me"}, files)
	if err != nil || !r.Linger || !slices.Equal(r.Outputs, []string{"json=a"}) {
		t.Errorf("the file sets %+v, %v", r, err)
	}
	if r, err = resolve(t, []string{"-o", "csv"}, []string{"HOME=/home/me"}, files); err != nil || !slices.Equal(r.Outputs, []string{"csv"}) {
		t.Errorf("the flag wins over the file: %v, %v", r.Outputs, err)
	}
}

func TestRefusals(t *testing.T) {
	files := map[string]string{"bad.json": "{ vus: 3", "list.json": "[1]", "out.json": `{"out": 3}`}
	for _, c := range []struct {
		args, env string
		code      int // 0: the error of the flag parser, which the command turns into 255
		want      string
	}{
		{"--vus lots", "", 0, "whole number"},
		{"--stage 5q:x", "", 0, "DURATION:TARGET"},
		{"-s 5s", "", 0, "DURATION:TARGET"},
		{"-d 10", "", 0, "10ms"},
		{"-d soon", "", 0, "duration"},
		{"--tag name", "", 0, "NAME=VALUE"},
		{"--tag name=", "", 0, "NAME=VALUE"},
		{"--tag =value", "", 0, "NAME=VALUE"},
		{"-e =x", "", 0, "NAME=VALUE"},
		{"-e 1st=x", "", 0, "NAME=VALUE"},
		{"--throw=perhaps", "", 0, "true or false"},
		{"--summary-mode fulll", "", 0, `did you mean "full"?`},
		{"--summary-time-unit h", "", 0, "s, ms, us"},
		{"--compatibility-mode old", "", 0, "extended"},
		{"--blacklist-ip nowhere", "", 0, "10.0.0.0/8"},
		{"--dns tll=3", "", 0, `did you mean "ttl"?`},
		{"--log-output stdrr", "", 255, `did you mean "stderr"?`},
		{"--log-output file", "", 255, "file=PATH"},
		{"--log-output file=x,level=loud", "", 255, "loud"},
		{"--log-output file=x,size=3", "", 255, "size=3"},
		{"--log-output none=x", "", 255, "no settings"},
		{"--log-output loki=http://x", "", 255, "Loki"},
		{"--log-format xml", "", 0, "text, json, raw"},
		{"--traces-output otel", "", 255, "none"},
		{"", "K6_VUS=lots", 104, "K6_VUS"},
		{"-e K6_STAGES=x", "", 104, "K6_STAGES"},
		{"", "METACHAOS_THROW=maybe", 104, "METACHAOS_THROW"},
		{"-c nowhere.json", "", 104, "nowhere.json"},
		{"", "K6_CONFIG=nowhere.json", 104, "nowhere.json"},
		{"-c bad.json", "", 104, "bad.json"},
		{"-c list.json", "", 104, "object"},
		{"-c out.json", "", 104, "out"},
	} {
		_, err := resolve(t, strings.Fields(c.args), strings.Fields(c.env), files)
		code := 0
		var coded interface{ ExitCode() int }
		if errors.As(err, &coded) {
			code = coded.ExitCode()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || code != c.code {
			t.Errorf("%s %s: %v with code %d, want %q and %d", c.args, c.env, err, code, c.want, c.code)
		}
	}
}

func TestLoadFlags(t *testing.T) {
	fs := pflag.NewFlagSet("run", pflag.ContinueOnError)
	s := Flags(fs)
	if err := fs.Parse([]string{"-u", "2", "--stage", "1s:2", "--tag", "a=b"}); err != nil {
		t.Fatal(err)
	}
	if got := s.LoadFlags(); !slices.Equal(got, []string{"vus", "stage"}) {
		t.Errorf("LoadFlags() = %v", got)
	}
}

func TestDropLoad(t *testing.T) {
	r, err := resolve(t, []string{"-c", "c.json"}, []string{"K6_VUS=2", "K6_DURATION=1s", "K6_THROW=true"}, map[string]string{"c.json": `{"scenarios": {}, "batch": 3}`})
	if err != nil {
		t.Fatal(err)
	}
	r.DropLoad()
	if got := shown(r.Overrides.Others) + " " + shown(r.Defaults); got != "throw=true batch=3" {
		t.Errorf("left: %s", got)
	}
}

// No flag or variable stands for two options.
func TestTableIsConsistent(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range append(scriptOptions(), runtimeOptions()...) {
		for _, key := range []string{"--" + o.flag, "-" + o.short, "K6_" + o.env} {
			if strings.TrimRight(key, "-") == "" || key == "K6_" {
				continue
			}
			if seen[key] {
				t.Errorf("%s stands for two options", key)
			}
			seen[key] = true
		}
		if o.flag != "" && o.usage == "" {
			t.Errorf("--%s has no usage text", o.flag)
		}
	}
}
