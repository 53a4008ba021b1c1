// Package reference is the reference cluster: a control plane and shards of
// one primary and its secondaries, which do what SEMANTICS.md says of a
// metadata cache. It is the target that every fault and analyzer is first
// tried on.
//
// [Start] runs it as operating-system processes that speak gRPC on loopback;
// [StartInMemory] runs the same nodes within this process, also in a synctest
// bubble.
package reference
