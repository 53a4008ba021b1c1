// Package k6cases holds small k6 scripts with what k6 2.2 really does with each,
// and runs them through the program. All scripts were written for this project;
// the expectations were found by running the k6 binary. See README.md.
package k6cases
