//go:build race

package k6cases

// slowness multiplies time limits: the race detector makes everything slower.
const slowness = 4.0

// buildFlags build the program as the test itself was built.
var buildFlags = []string{"-race"}
