// Command metachaos finds out what a metadata cache does when pushes are
// lost, TTLs line up and a primary freezes.
package main

import (
	"os"

	"github.com/metachaos/metachaos/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
