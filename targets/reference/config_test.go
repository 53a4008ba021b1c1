package reference_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/metachaos/metachaos/targets/reference"
)

func TestConfigOfAPlan(t *testing.T) {
	var c reference.Config
	err := yaml.Unmarshal([]byte("{shards: 3, refresh: direct, refresh_limit: 5s, filter: false, push_heartbeat: 100ms}"), &c)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	full := c.WithDefaults()
	if full.Shards != 3 || full.Replicas != 3 || full.Objects != 16 || full.Documents != 2000 || full.Refresh != reference.Direct ||
		full.RefreshLimit != 5*time.Second || *full.Filter || full.PushHeartbeat != 100*time.Millisecond {
		t.Errorf("got %+v", full)
	}
	if d := reference.Defaults(); !*d.Filter || d.Refresh != reference.ViaPrimary || d.RefreshLimit != 30*time.Second {
		t.Errorf("defaults %+v", d)
	}
}

func TestConfigErrorsSayWhatIsAllowed(t *testing.T) {
	for _, row := range []struct {
		c    reference.Config
		want string
	}{
		{reference.Config{Refresh: "psychic"}, `refresh is "psychic"; want one of via-primary, direct, from-disk`},
		{reference.Config{Shards: -1}, "shards is -1; want 1 to 64"},
		{reference.Config{Replicas: 10}, "replicas is 10; want 1 to 9"},
		{reference.Config{Objects: -1}, "objects is -1"},
		{reference.Config{Documents: -1}, "documents is -1"},
		{reference.Config{RefreshLimit: time.Nanosecond}, "refresh_limit is 1ns; want 10ms to 1h0m0s"},
		{reference.Config{PullDelay: -1}, "pull_delay is -1ns"},
	} {
		if err := row.c.Validate(); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%+v: error %v; want it to contain %q", row.c, err, row.want)
		}
	}
}

func TestPlacementIsStableAndEven(t *testing.T) {
	const n = 16
	objects := reference.NewObjects(n)
	counts := map[string]int{}
	for i := range 2000 {
		key := fmt.Sprintf("item-%d", i)
		o := objects.For(key)
		if o != reference.ObjectFor(key, n) {
			t.Fatalf("key %s is placed in two objects", key)
		}
		counts[o.ID]++
	}
	for _, o := range objects {
		if c := counts[o.ID]; c < 80 || c > 170 {
			t.Errorf("object %s has %d of 2000 documents; want about 125", o, c)
		}
	}
}
