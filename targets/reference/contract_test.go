package reference_test

import (
	"testing"
	"testing/synctest"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference"
	"github.com/metachaos/metachaos/targets/targettest"
)

func TestProcessesKeepTheContract(t *testing.T) {
	targettest.Run(t, func(t *testing.T) targets.Target {
		t.Helper()
		return startCluster(t, small(func(c *reference.Config) { c.Replicas = 2 }))
	})
}

// In memory every check runs in a bubble: nothing there may need sockets, nor
// wait for anything but time.
func TestMemoryKeepsTheContract(t *testing.T) {
	for _, refresh := range []string{reference.ViaPrimary, reference.Direct, reference.FromDisk} {
		for _, c := range targettest.Checks() {
			config := small(func(c *reference.Config) { c.Refresh = refresh })
			if !c.Applies(memoryInfo(t, config)) {
				continue
			}
			t.Run(refresh+"/"+c.Name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m, err := reference.StartInMemory(config, targets.NewBase())
					if err != nil {
						t.Fatal(err)
					}
					targettest.Try(t, c, m)
				})
			})
		}
	}
}

func memoryInfo(t *testing.T, c reference.Config) targets.Info {
	t.Helper()
	m := startMemory(t, c)
	return m.Info()
}
