package reference_test

import (
	"context"
	"fmt"
	"time"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference"
)

// The first operation on an object is refused, because the node has to learn
// who owns it; the retry is served.
func ExampleStartInMemory() {
	ctx := context.Background()
	m, err := reference.StartInMemory(reference.Config{Shards: 1, Documents: 10}, targets.NewBase())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = m.Close(ctx) }()
	op := targets.Op{Verb: targets.VerbRead, Node: "s1-0", Key: "item-7", Epoch: 1}
	r := m.Do(ctx, op)
	fmt.Println(r.Outcome, r.Code)
	for r.Outcome == targets.Refused {
		time.Sleep(r.RetryAfter)
		r = m.Do(ctx, op)
	}
	fmt.Println(r.Outcome, r.Epoch, string(r.Documents[0].Value))
	// Output:
	// refused UNKNOWN_OWNERSHIP
	// done 1 item-7 as loaded
}
