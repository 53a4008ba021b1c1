// Package plugin runs faults in processes of their own, written by anybody.
//
// The host calls [Open] and gets faults like any others. A plugin's main calls
// [Serve]. The two speak gRPC (internal/pb/fault.proto) over mutual TLS whose
// keys live as long as the process, after a handshake that agrees on the
// version of the protocol; the host starts only a file with the pinned
// checksum.
//
// A plugin outlives a host that was killed for just as long as it takes to
// revert: the host holds the write end of a pipe, the plugin reads the other
// end as descriptor 3 (or watches its parent, where there is no pipe), and
// when it sees the end it reverts everything and exits. It also reverts by
// itself whatever outlives its lease.
package plugin

//go:generate go tool -modfile=../../internal/devtools/go.mod buf generate
