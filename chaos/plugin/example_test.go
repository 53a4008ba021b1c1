package plugin_test

import (
	"context"
	"fmt"
	"os"

	"github.com/metachaos/metachaos/chaos/faults"
	"github.com/metachaos/metachaos/chaos/plugin"
)

// The main of a plugin serves its faults and does nothing else.
func ExampleServe() {
	if err := plugin.Serve(faults.PrimaryFreeze(nil, faults.Options{})); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// A host pins the file that it is willing to run.
func ExampleOpen() {
	ctx := context.Background()
	client, all, err := plugin.Open(ctx, plugin.Config{
		Path:   "/usr/local/lib/metachaos/freeze",
		SHA256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = client.Close(ctx) }()
	fmt.Println(all["primary.freeze"].Describe().Summary)
}
