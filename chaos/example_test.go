package chaos_test

import (
	"fmt"
	"time"

	"github.com/metachaos/metachaos/chaos"
	"github.com/metachaos/metachaos/chaos/faults"
	"github.com/metachaos/metachaos/targets"
)

// A timeline is checked as a whole before anything starts.
func ExampleCheck() {
	steps := []chaos.Step{
		{ID: "freeze", Fault: "primary.freeze", At: 10 * time.Second, For: 20 * time.Second},
		{ID: "lose", Fault: "push.dorp", At: 15 * time.Second, For: time.Second},
		{ID: "herd", Fault: "ttl.synchronize", At: 20 * time.Second, For: time.Second},
	}
	offer := chaos.Offer{Info: targets.Info{Kind: "toy", Capabilities: []targets.Capability{targets.CapProcesses}}}
	fmt.Println(chaos.Check(steps, faults.All(nil, faults.Options{}), chaos.Guards{}, offer))
	// Output:
	// step lose (push.dorp): no such fault or action: did you mean "push.drop"?
	// step herd (ttl.synchronize): it needs a target with the capability "rules", which the target "toy" lacks
	// step herd (ttl.synchronize): at 20s freeze would still be active, and guards.max_concurrent allows 1 at once
}
