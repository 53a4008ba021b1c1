package plugin

import (
	"context"
	"errors"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/metachaos/metachaos/chaos/plugin/internal/pb"
)

// ProtocolVersion is the version of the protocol that this host and guest
// speak.
const ProtocolVersion = 1

const (
	pluginSetName = "faults"
	// lifelineVariable tells the plugin that descriptor lifelineFD is the pipe
	// which ends with the host.
	lifelineVariable = "METACHAOS_PLUGIN_LIFELINE"
	lifelineFD       = 3
)

// handshake keeps people from running a plugin by hand. It is no secret: who
// may talk to a plugin is decided by mutual TLS.
func handshake() goplugin.HandshakeConfig {
	return goplugin.HandshakeConfig{
		ProtocolVersion:  ProtocolVersion,
		MagicCookieKey:   "METACHAOS_PLUGIN",
		MagicCookieValue: "faults",
	}
}

// wire joins the gRPC service to go-plugin: on the guest's side with a server,
// on the host's without.
type wire struct {
	goplugin.NetRPCUnsupportedPlugin
	server pb.FaultsServer
}

var _ goplugin.GRPCPlugin = (*wire)(nil)

func (w *wire) GRPCServer(_ *goplugin.GRPCBroker, s *grpc.Server) error {
	if w.server == nil {
		return errors.New("serve plugin: the host's side has no server")
	}
	pb.RegisterFaultsServer(s, w.server)
	return nil
}

func (w *wire) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, c *grpc.ClientConn) (any, error) {
	return pb.NewFaultsClient(c), nil
}

func pluginSets(server pb.FaultsServer) map[int]goplugin.PluginSet {
	return map[int]goplugin.PluginSet{ProtocolVersion: {pluginSetName: &wire{server: server}}}
}
