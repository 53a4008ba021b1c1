// Package targets is the vocabulary of metachaos and the kit for writing a
// system under test: what an object, an epoch, an owner and an operation are,
// and what a target must be able to do.
//
// The package is a leaf: it imports nothing else of this module, and no
// third-party type appears in it. Every other package speaks its words.
//
// Two kinds of system fit the interfaces. One carries epochs in its requests
// and leaves the cache to the caller (the reference cluster): it implements
// [Target], [Fetcher] and [Watcher], and metachaos' own cache clients keep the
// map. The other comes with a client library that keeps the map itself
// (go-redis, an etcd client): it implements [SelfRouting], one session per
// logical client, and is observed from outside.
package targets
