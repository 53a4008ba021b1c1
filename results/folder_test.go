package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metachaos/metachaos/chaos"
	"github.com/metachaos/metachaos/targets"
)

func mustCreate(t testing.TB, m Manifest) *Folder {
	t.Helper()
	f, err := Create(filepath.Join(t.TempDir(), "runs", "r1"), m)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func mustOpen(t testing.TB, dir string) *Run {
	t.Helper()
	run, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func collect[T any](t testing.TB, seq iter.Seq2[T, error]) []T {
	t.Helper()
	var out []T
	for v, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	return out
}

func TestFolderRoundTrip(t *testing.T) {
	object := targets.Object{Kind: targets.KindRoute, ID: "r1"}
	events := []targets.Event{
		{Start: 1, End: 2, Client: "c1", Verb: targets.EventRead, Object: object, Key: "k", Outcome: targets.Done, Shard: "s1"},
		{Start: 2, End: 9, Client: "c2", Verb: targets.EventWrite, Outcome: targets.Refused, Code: targets.CodeStaleEpoch,
			Hops: []targets.Hop{{Node: "a", Epoch: 1, Code: targets.CodeStaleEpoch, Owner: "s2"}, {Node: "b", Epoch: 2}}, HopCount: 2},
	}
	truth := []targets.Truth{{At: -5, Kind: targets.TruthCommit, Object: object, Epoch: 1, Owner: "s1"}}
	injections := []chaos.Injection{{At: 7, ID: "freeze", Fault: "primary.freeze", Phase: chaos.PhasePlanned, Touches: []string{"pid 1"}}}
	hosts := []Host{{At: 3, CPUPercent: 12.5, Processes: []ProcessUse{{Node: "a", PID: 4, State: "T"}}}}

	f := mustCreate(t, Manifest{Name: "frozen", Seed: 7, Complete: true, TargetConfig: json.RawMessage(`{"shards":2}`)})
	reg := NewRegistry()
	m := reg.MustMetric("op", Trend, ContainsTime)
	samples := []Sample{{At: 1, Metric: m, Value: 1.5}, {At: 2, Metric: m, Tags: reg.Tags(map[string]string{"op": "read"}), Value: 2}}
	f.Record(samples...)
	for _, e := range events {
		f.Event(e)
	}
	f.Truth(truth[0])
	f.Injection(injections[0])
	f.Host(hosts[0])
	if mustOpen(t, f.Dir()).Manifest().Complete {
		t.Error("a run that has not ended reads as complete")
	}
	if err := f.Close(func(m *Manifest) { m.LoadEnd = 10 }); err != nil {
		t.Fatal(err)
	}

	run := mustOpen(t, f.Dir())
	got := run.Manifest()
	want := Counts{Samples: Count{2, 0}, Events: Count{2, 0}, Truth: Count{1, 0}, Injections: Count{1, 0}, Hosts: Count{1, 0}}
	if got.Counts != want || !got.Complete || got.LoadEnd != 10 || got.Name != "frozen" || got.Seed != 7 {
		t.Errorf("manifest = %+v", got)
	}
	equal(t, collect(t, run.Events()), events)
	equal(t, collect(t, run.Truth()), truth)
	equal(t, collect(t, run.Injections()), injections)
	equal(t, collect(t, run.Hosts()), hosts)
	var text []string
	for s, err := range run.Samples() {
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, fmt.Sprintf("%d %s/%s %v %v", s.At, s.Metric.Name, s.Metric.Kind, s.Tags.Map(), s.Value))
	}
	equal(t, text, []string{"1 op/trend map[] 1.5", "2 op/trend map[op:read] 2"})
	if d := run.Damage(); d.Total() != 0 {
		t.Errorf("damage = %+v", d)
	}
}

func equal[T any](t testing.TB, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestConcurrentRecordsAllArrive(t *testing.T) {
	f := mustCreate(t, Manifest{})
	m := NewRegistry().MustMetric("n", Counter, ContainsDefault)
	const writers, each = 8, 5000
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				f.Record(Sample{At: time.Duration(i), Metric: m, Value: 1})
				f.Event(targets.Event{Start: time.Duration(i), End: time.Duration(i), Client: fmt.Sprint(w), Verb: targets.EventRead, Outcome: targets.Done})
			}
		})
	}
	wg.Wait()
	if err := f.Close(nil); err != nil {
		t.Fatal(err)
	}
	run := mustOpen(t, f.Dir())
	sum := 0.0
	for s, err := range run.Samples() {
		if err != nil {
			t.Fatal(err)
		}
		sum += s.Value
	}
	if n := len(collect(t, run.Events())); n != writers*each || sum != writers*each {
		t.Errorf("read %d events and %v samples, want %d of each", n, sum, writers*each)
	}
}

func waitFor(t *testing.T, what func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !what(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("condition was not reached in time")
		}
	}
}

func TestLinesReachTheDiskWithinAFewSeconds(t *testing.T) {
	f := mustCreate(t, Manifest{})
	f.Truth(targets.Truth{Kind: targets.TruthCommit})
	waitFor(t, func() bool { return len(collect(t, mustOpen(t, f.Dir()).Truth())) == 1 })
	if err := f.Close(nil); err != nil {
		t.Fatal(err)
	}
}

func TestOpenExplainsWhatIsWrong(t *testing.T) {
	for _, c := range []struct{ content, want string }{
		{"", "no valid manifest"},
		{"{not json", "no valid manifest"},
		{`{"format": 99}`, "format 99"},
		{`{}`, "format 0"},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, ManifestFile)
		if err := os.WriteFile(path, []byte(c.content), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("Open with manifest %q: %v, want %q and the path", c.content, err, c.want)
		}
	}
	dir := filepath.Join(t.TempDir(), "absent")
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("Open of nothing: %v", err)
	}
}

func TestCreateRefusesAnExistingFolder(t *testing.T) {
	if _, err := Create(t.TempDir(), Manifest{}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Create over a folder: %v, want it to exist already", err)
	}
}

func TestWriteErrorsCountAsLost(t *testing.T) {
	f := mustCreate(t, Manifest{})
	nan := Host{At: 1, CPUPercent: nan()}
	f.Host(nan) // has no JSON form
	f.Host(Host{At: 2})
	if err := f.Close(nil); err == nil {
		t.Error("Close said nothing about a lost record")
	}
	run := mustOpen(t, f.Dir())
	if c := run.Manifest().Counts; c.Hosts != (Count{Written: 1, Lost: 1}) || c.Lost() != 1 {
		t.Errorf("counts = %+v", c)
	}
	equal(t, collect(t, run.Hosts()), []Host{{At: 2}})
}

func nan() float64 { var zero float64; return zero / zero }
