// Package k6ws is the modules k6/ws and k6/websockets: WebSocket clients, one
// that blocks the virtual user until the connection is closed, and one with
// the API of browsers.
package k6ws
