package reference_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference"
)

// roleVariable makes this test binary something else than a test.
const roleVariable = "METACHAOS_REFERENCE_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "":
		os.Exit(m.Run())
	case "node":
		if err := reference.NodeMain(context.Background(), os.Stdin, os.Stdout, os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "parent":
		parentMain()
	}
}

// launcher starts this test binary as a node. A race-enabled one would sleep
// for a second when it ends.
func launcher(t *testing.T) reference.Launcher {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return reference.Launcher{Path: self, Env: []string{roleVariable + "=node", "GORACE=atexit_sleep_ms=0"}}
}

// small is a configuration that starts quickly.
func small(more func(*reference.Config)) reference.Config {
	c := reference.Config{Documents: 60, Objects: 8, RefreshLimit: time.Second, PushHeartbeat: 50 * time.Millisecond}
	if more != nil {
		more(&c)
	}
	return c
}

// startCluster starts processes; what they complain about fails the test.
func startCluster(t *testing.T, c reference.Config) *reference.Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	complaints := &bytes.Buffer{}
	cluster, err := reference.Start(ctx, reference.Options{Config: c, Base: targets.NewBase(), Launch: launcher(t),
		Dir: t.TempDir(), Stderr: complaints})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if complaints.Len() > 0 {
			t.Errorf("nodes complained: %s", complaints)
		}
	})
	return cluster
}

func startMemory(t *testing.T, c reference.Config) *reference.Memory {
	t.Helper()
	m, err := reference.StartInMemory(c, targets.NewBase())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return m
}
