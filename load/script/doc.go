// Package script runs k6 scripts: a JavaScript runtime per VU over one
// compiled program, ES modules, an event loop, and k6's built-in modules.
package script
