package script

import (
	"fmt"
	"strings"

	"github.com/metachaos/metachaos/internal/suggest"
)

// alternatives say of modules that k6 has or had and this program has not what
// to use in their place. A name that ends in / stands for all below it.
var alternatives = [...]struct{ name, feature, instead string }{
	{"k6/browser", "driving a browser", "load the same endpoints with k6/http, and k6/html to read pages"},
	{"k6/experimental/browser", "driving a browser", "load the same endpoints with k6/http, and k6/html to read pages"},
	{"k6/crypto/x509", "reading certificates", "keys in PKCS #8, SPKI or JWK form can be imported with crypto.subtle.importKey"},
	{"k6/experimental/websockets", "the experimental name of WebSockets", "import k6/websockets, which has the same API"},
	{"k6/experimental/grpc", "the experimental name of gRPC", "import k6/net/grpc, which has the same API"},
	{"k6/experimental/timers", "the experimental name of timers", "import k6/timers, or use the global setTimeout"},
	{"k6/experimental/webcrypto", "the experimental name of WebCrypto", "use the global crypto"},
	{"k6/experimental/tracing", "tracing", "send a traceparent header of your own in params.headers"},
	{"k6/experimental/redis", "a Redis client", "load a Redis target with k6/x/metacache"},
	{"k6/experimental/fs", "reading files piece by piece", "read the file with open() in init code, within a SharedArray if it is large"},
	{"k6/experimental/csv", "parsing CSV", "read the file with open() in init code and split it within a SharedArray"},
	{"k6/experimental/streams", "streams", "read the data with open() in init code"},
	{"k6/experimental/", "experimental modules", "see the list of modules in the documentation"},
	{"k6/x/", "k6 extensions in Go", "only extensions that were built into this program can be imported"},
}

// unsupported is the error for a name under k6 that is none of the known
// modules.
func unsupported(specifier string, known []string) error {
	for _, a := range alternatives {
		if specifier == a.name || strings.HasSuffix(a.name, "/") && strings.HasPrefix(specifier, a.name) {
			return fmt.Errorf("import %q: %s is not supported; %s", specifier, a.feature, a.instead)
		}
	}
	return fmt.Errorf("import %q: there is no such module; %s", specifier, suggest.Name(specifier, known))
}
