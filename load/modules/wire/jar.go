package wire

import (
	"net/http"

	"github.com/metachaos/metachaos/load/script"
)

// jarKey is the key under which the modules of a VU share its cookie jar.
type jarKey struct{}

type sharedJar struct{ current func() http.CookieJar }

func jarOf(h script.ProtocolHost) *sharedJar {
	return h.Share(jarKey{}, func() any { return &sharedJar{} }).(*sharedJar)
}

// ShareJar makes the cookies of HTTP known to the other modules of the VU.
// current returns the jar of the running iteration; it is called on the event
// loop.
func ShareJar(h script.ProtocolHost, current func() http.CookieJar) { jarOf(h).current = current }

// Jar returns the cookie jar of the running iteration, or nil when no module
// keeps one.
func Jar(h script.ProtocolHost) http.CookieJar {
	if j := jarOf(h); j.current != nil {
		return j.current()
	}
	return nil
}
