// Package cli is the command line of metachaos: it parses flags, finds files,
// wires the other packages together, and turns errors and verdicts into exit
// codes. Standard output is data, standard error is narration.
package cli
