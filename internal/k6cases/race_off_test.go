//go:build !race

package k6cases

// slowness multiplies time limits.
const slowness = 1.0

// buildFlags build the program as the test itself was built.
var buildFlags []string
