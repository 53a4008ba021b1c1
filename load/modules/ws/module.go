package k6ws

import (
	"github.com/metachaos/metachaos/load/modules/wire"
	"github.com/metachaos/metachaos/load/script"
	"github.com/metachaos/metachaos/results"
)

// Blocking returns the module "k6/ws".
func Blocking() script.Module { return moduleFunc(blockingExports) }

// Browser returns the module "k6/websockets".
func Browser() script.Module { return moduleFunc(browserExports) }

type moduleFunc func(*client) script.Exports

var _ script.Module = moduleFunc(nil)

// Exports makes the exports for one VU.
func (f moduleFunc) Exports(h script.Host) script.Exports {
	host := h.(script.ProtocolHost) // as the engine promises
	return f(&client{host: host, metrics: metricsOf(host)})
}

// client is what the sockets of one VU share.
type client struct {
	host    script.ProtocolHost
	metrics metrics
	options *wire.Options // read on first use, when they are known
}

type metrics struct {
	sessions, sent, received, ping, duration, connecting *results.Metric
}

func metricsOf(h script.ProtocolHost) metrics {
	return metrics{sessions: h.Builtin("ws_sessions"), sent: h.Builtin("ws_msgs_sent"), received: h.Builtin("ws_msgs_received"),
		ping: h.Builtin("ws_ping"), duration: h.Builtin("ws_session_duration"), connecting: h.Builtin("ws_connecting")}
}

// ready refuses to connect in init code and reads the options.
func (c *client) ready(what string) *wire.Options {
	if c.host.InInit() {
		wire.Throw(c.host, "%s: WebSockets cannot be opened in init code", what)
	}
	if c.options == nil {
		o, err := wire.ReadOptions(c.host.Options())
		if err != nil {
			wire.Throw(c.host, "%s: %w", what, err)
		}
		c.options = &o
	}
	return c.options
}
