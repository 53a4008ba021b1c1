package k6secrets

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"testing"

	"github.com/metachaos/metachaos/load/modules/wire/wiretest"
	"github.com/metachaos/metachaos/load/script"
)

func read(name string) ([]byte, error) {
	files := map[string]string{"s.env": "# comment\n\napi_key = topsecret77\nurl=http://x/?a=b\n", "bad.env": "api_key=x\nsecretwithoutkey\n", "other.env": "api_key=another88"}
	text, ok := files[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return []byte(text), nil
}

func sources(t *testing.T, definitions ...string) *Sources {
	t.Helper()
	s := &Sources{}
	for _, d := range definitions {
		if err := s.Add(d, read); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestGet(t *testing.T) {
	for _, c := range []struct {
		name        string
		definitions []string
		source, key string
		want, err   string
	}{
		{"a file", []string{"file=s.env"}, "", "api_key", "topsecret77", ""},
		{"a value with =", []string{"file=s.env"}, "", "url", "http://x/?a=b", ""},
		{"by the kind", []string{"file=s.env"}, "file", "api_key", "topsecret77", ""},
		{"settings", []string{"file=filename=s.env,name=prod,default", "mock=a=1"}, "", "api_key", "topsecret77", ""},
		{"mock", []string{`mock=name=m,default,cool="cool secret"`, "file=s.env"}, "m", "cool", "cool secret", ""},
		{"the default of two", []string{"file=s.env", "mock=default,api_key=mocked"}, "", "api_key", "mocked", ""},
		{"no sources", nil, "", "k", "", "--secret-source"},
		{"no key", []string{"file=s.env"}, "", "nope", "", `no key "nope"`},
		{"no default", []string{"file=s.env", "mock=a=1"}, "", "a", "", "none of the sources file, mock is the default"},
		{"no source", []string{"file=name=prod,filename=s.env"}, "prood", "a", "", `did you mean "prod"?`},
	} {
		got, err := sources(t, c.definitions...).get(c.source, c.key)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: got %q, %v", c.name, got, err)
		}
	}
}

func TestAddRefuses(t *testing.T) {
	for definition, want := range map[string]string{
		"file":                      "file=PATH",
		"file=":                     "file=PATH",
		"fil=x":                     `did you mean "file"?`,
		"file=none.env":             "none.env",
		"file=bad.env":              "bad.env:2: want KEY=VALUE",
		"file=filename=s.env,nam=x": `no setting "nam"`,
		"mock=name=first,a=1":       "is taken",
		"mock=name=x,default,a=1":   "is the default already",
	} {
		s := sources(t, "mock=name=first,default,k=v")
		if err := s.Add(definition, read); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secretwithoutkey") {
			t.Errorf("%s: got %v, want %q", definition, err, want)
		}
	}
}

func TestModule(t *testing.T) {
	s := sources(t, "file=filename=s.env,default", "file=name=second,filename=other.env")
	log := &bytes.Buffer{}
	cfg := script.Config{Modules: map[string]script.Module{"k6/secrets": s.Module()}, Logger: slog.New(s.Hide(slog.NewTextHandler(log, nil)))}
	wiretest.Passes(t, 3, cfg, map[string]string{"script.js": `
		import secrets from 'k6/secrets';
		import { check } from 'k6';
		const early = await secrets.get('url');
		export default async function () {
			const key = await secrets.get('api_key'), other = await secrets.source('second').get('api_key');
			let failed = ''; try { await secrets.get('none'); } catch (e) { failed = String(e); }
			let unknown = ''; try { secrets.source('third'); } catch (e) { unknown = String(e); }
			console.log('leak ' + key + ' and ' + other + '!');
			check(null, { length: () => key.length === 11 && other.length === 9 && early.length === 13, failed: () => failed.includes('none'), unknown: () => unknown.includes('third') });
			throw new Error('with ' + key);
		}`})
	text := log.String()
	if strings.Contains(text, "topsecret77") || strings.Contains(text, "another88") || !strings.Contains(text, "leak ***SECRET_REDACTED*** and ***SECRET_REDACTED***!") || !strings.Contains(text, "with ***SECRET_REDACTED***") {
		t.Errorf("log: %s", text)
	}
}

func TestHideCoversAttributes(t *testing.T) {
	s := sources(t, "mock=a=hush,b=hushhush")
	var log bytes.Buffer
	logger := slog.New(s.Hide(slog.NewTextHandler(&log, nil)))
	logger.Info("hush before it is known")
	for _, key := range []string{"a", "b"} {
		if _, err := s.get("", key); err != nil {
			t.Fatal(err)
		}
	}
	logger.With("with", "a hush").WithGroup("g").Info("hushhush", "text", "hush!", "err", fmt.Errorf("x: %w", errors.New("hush")),
		slog.Group("inner", "deep", "hush"), "number", 7)
	before, after, _ := strings.Cut(log.String(), "\n")
	if !strings.Contains(before, "hush before") || strings.Contains(after, "hush") || strings.Count(after, redacted) != 5 || !strings.Contains(after, "g.number=7") {
		t.Errorf("log: %s", log.String())
	}
}

func FuzzAdd(f *testing.F) {
	for _, seed := range []string{"file=s.env", "mock=a=1,b", "file=filename=s.env,name=,default", "=,=", "mock==="} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, definition string) {
		s := &Sources{}
		if s.Add(definition, read) == nil && len(s.byName) != 1 {
			t.Errorf("%d sources", len(s.byName))
		}
	})
}
