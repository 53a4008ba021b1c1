// Package proxy stands between clients and a gRPC server and acts on single
// messages, without knowing their types.
//
// A [Proxy] is transparent for every method: messages go through as the bytes
// that they are, in order, and metadata, trailers, status, deadlines,
// half-close and flow control are kept. Connections are plain text (no TLS).
// While a [Rule] is armed, the messages that it selects vanish:
//
//	client ──► [listener] ──► rules ──► [connection] ──► server
//	client ◄── [listener] ◄── rules ◄── [connection] ◄── server
//
// A proxy lives in the process that made it and dies with it, so that a killed
// controller leaves no fault behind.
package proxy
