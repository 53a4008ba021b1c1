// Package fleet drives many cache clients against one target: it performs
// what the kernel in package client decides, over shared connections, and
// tells a [Sink] what happened to every operation, pull and push.
//
// A target that keeps the map itself ([targets.SelfRouting]) gets one session
// per client instead of a cache, and the fleet only observes.
package fleet
