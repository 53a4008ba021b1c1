// Package client is the kernel of a metadata-cache client: what one logical
// client caches, when its entries expire, what a push or a refusal makes of
// them, and what an operation does next.
//
// It is a pure state machine. It is told the time and never asks, draws random
// numbers from a generator that it is given, and performs no input or output:
// package fleet does that.
package client
