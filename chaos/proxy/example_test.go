package proxy_test

import (
	"context"
	"fmt"

	"github.com/metachaos/metachaos/chaos/proxy"
)

// A proxy forwards everything until a rule is armed.
func Example() {
	p, err := proxy.Listen(context.Background(), proxy.Config{Backend: "127.0.0.1:7001"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = p.Close() }()
	// Clients connect to p.Addr() now.
	half, err := p.Arm(proxy.Rule{Method: "Watch", Direction: proxy.ToClient, Share: 0.5, Seed: 7})
	if err != nil {
		fmt.Println(err)
		return
	}
	half.Disarm()
	fmt.Println(half.Counts())
	// Output: 0 0
}
