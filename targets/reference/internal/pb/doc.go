// Package pb is the generated code of reference.proto. Only the wire package
// imports it.
package pb

//go:generate go tool -modfile=../../../../internal/devtools/go.mod buf generate
