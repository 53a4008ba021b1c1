package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/metachaos/metachaos/chaos"
	"github.com/metachaos/metachaos/chaos/faults"
	"github.com/metachaos/metachaos/internal/experiment"
	k6grpc "github.com/metachaos/metachaos/load/modules/grpc"
	k6html "github.com/metachaos/metachaos/load/modules/html"
	k6http "github.com/metachaos/metachaos/load/modules/http"
	k6secrets "github.com/metachaos/metachaos/load/modules/secrets"
	k6ws "github.com/metachaos/metachaos/load/modules/ws"
	"github.com/metachaos/metachaos/load/script"
	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference"
)

// builtinFaults is the bill of materials of faults and actions, bound to a
// target, or to none for describing and recovering them.
func builtinFaults(t targets.Target) map[string]chaos.Fault { return faults.All(t, faults.Options{}) }

// builtinModules is the bill of materials of what scripts can import beside
// k6's core modules.
func builtinModules(secrets *k6secrets.Sources) map[string]script.Module {
	return map[string]script.Module{
		"k6/http":       k6http.New(),
		"k6/html":       k6html.New(),
		"k6/ws":         k6ws.Blocking(),
		"k6/websockets": k6ws.Browser(),
		"k6/net/grpc":   k6grpc.New(),
		"k6/secrets":    secrets.Module(),
	}
}

// builtinKinds is the bill of materials of targets. Complaints of the
// processes that a target starts go to log.
func builtinKinds(log io.Writer) map[string]experiment.Kind {
	return map[string]experiment.Kind{"reference": referenceKind(log)}
}

func referenceKind(log io.Writer) experiment.Kind {
	decoded := func(decode func(any) error) (reference.Config, error) {
		var c reference.Config
		if err := decode(&c); err != nil {
			return c, err
		}
		return c.WithDefaults(), c.Validate()
	}
	return experiment.Kind{
		Name:    "reference",
		Summary: "the reference cluster: a control plane and shards of a primary and secondaries, as processes on this host",
		Check: func(decode func(any) error) (experiment.Forecast, error) {
			c, err := decoded(decode)
			if err != nil {
				return experiment.Forecast{}, err
			}
			info, rules, topology := reference.Describe(c)
			raw, err := json.Marshal(c)
			return experiment.Forecast{Offer: chaos.Offer{Info: info, Rules: rules}, Config: raw, Topology: topology}, err
		},
		Start: func(ctx context.Context, decode func(any) error, base targets.Base) (targets.Target, chaos.Owned, error) {
			c, err := decoded(decode)
			if err != nil {
				return nil, chaos.Owned{}, err
			}
			self, err := os.Executable()
			if err != nil {
				return nil, chaos.Owned{}, fmt.Errorf("find this program: %w", err)
			}
			cluster, err := reference.Start(ctx, reference.Options{Config: c, Base: base, Stderr: log,
				Launch: reference.Launcher{Path: self, Args: []string{nodeCommand}}})
			if err != nil {
				return nil, chaos.Owned{}, err
			}
			return cluster, chaos.Owned{Folder: cluster.Dir()}, nil
		},
	}
}
