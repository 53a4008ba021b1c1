// Package targettest is the contract that every target passes: [Run] tries a
// target on everything that its capabilities promise. It also has [Library],
// a small target whose client library keeps the map.
package targettest

import (
	"context"
	"testing"
	"time"

	"github.com/metachaos/metachaos/targets"
)

// limit bounds one check.
const limit = 30 * time.Second

// Check is one promise of the contract.
type Check struct {
	Name string
	// Needs are the capabilities that a target must have for the check to
	// apply; Lacks are those that it must not have.
	Needs, Lacks []targets.Capability
	// Try tries the promise on a target of its own, which it may leave
	// changed or closed, and returns what is wrong.
	Try func(ctx context.Context, t targets.Target) error
}

// Applies reports whether the check is for a target like that.
func (c Check) Applies(i targets.Info) bool {
	for _, need := range c.Needs {
		if !i.Has(need) {
			return false
		}
	}
	for _, lack := range c.Lacks {
		if i.Has(lack) {
			return false
		}
	}
	return true
}

// Checks returns the whole contract.
func Checks() []Check {
	var all []Check
	for _, group := range [][]Check{generalChecks(), operationChecks(), epochChecks(), metadataChecks(), faultChecks(), sessionChecks()} {
		all = append(all, group...)
	}
	return all
}

// Run tries every check that applies to the target. Start is called once to
// ask for the capabilities, and once more for each check; it fails the test
// when it cannot start one. Run closes what was started.
func Run(t *testing.T, start func(t *testing.T) targets.Target) {
	t.Helper()
	probe := start(t)
	info := probe.Info()
	if err := probe.Close(t.Context()); err != nil {
		t.Fatalf("close target: %v", err)
	}
	tried := 0
	for _, c := range Checks() {
		if !c.Applies(info) {
			continue
		}
		tried++
		t.Run(c.Name, func(t *testing.T) { Try(t, c, start(t)) })
	}
	if tried < len(generalChecks()) {
		t.Fatalf("only %d checks apply to a target with the capabilities %v", tried, info.Capabilities)
	}
}

// Try tries one check on a target and closes it.
func Try(t *testing.T, c Check, target targets.Target) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := c.Try(ctx, target); err != nil {
		t.Errorf("%s: %v", c.Name, err)
	}
	if err := target.Close(ctx); err != nil {
		t.Errorf("close target: %v", err)
	}
}

func needs(c ...targets.Capability) []targets.Capability { return c }
