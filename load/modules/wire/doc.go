// Package wire is what modules that keep connections open share: dialling under
// the options of the script, events that arrive from other goroutines, and the
// reading of JavaScript values.
package wire
