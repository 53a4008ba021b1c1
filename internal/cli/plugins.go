package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/metachaos/metachaos/chaos"
	"github.com/metachaos/metachaos/chaos/plugin"
	"github.com/metachaos/metachaos/targets"
)

// plugins are the fault plugins of a run.
type plugins struct {
	clients []*plugin.Client
	faults  map[string]chaos.Fault
}

// openPlugins starts a plugin per flag: a program with arguments, after an
// optional sha256:HEX that pins it. Without one, the program is pinned to what
// it is now.
func openPlugins(ctx context.Context, flags []string, log io.Writer) (*plugins, error) {
	p := &plugins{faults: map[string]chaos.Fault{}}
	for _, text := range flags {
		words := strings.Fields(text)
		sum := ""
		if len(words) > 0 {
			if hex, ok := strings.CutPrefix(words[0], "sha256:"); ok {
				sum, words = hex, words[1:]
			}
		}
		if len(words) == 0 {
			p.close(ctx)
			return nil, withCode(exitConfig, fmt.Errorf("bad --plugin %q, want [sha256:HEX] PROGRAM [ARGUMENT…]", text))
		}
		if err := p.open(ctx, words[0], sum, words[1:], log); err != nil {
			p.close(ctx)
			return nil, withCode(exitConfig, err)
		}
	}
	return p, nil
}

func (p *plugins) open(ctx context.Context, program, sum string, args []string, log io.Writer) error {
	path, err := exec.LookPath(program)
	if err != nil {
		return fmt.Errorf("find plugin: %w", err)
	}
	if sum == "" {
		if sum, err = plugin.Checksum(path); err != nil {
			return err
		}
	}
	logger := hclog.New(&hclog.LoggerOptions{Name: "plugin", Output: log, Level: hclog.Warn})
	client, faults, err := plugin.Open(ctx, plugin.Config{Path: path, SHA256: sum, Args: args, Logger: logger})
	if err != nil {
		return err
	}
	p.clients = append(p.clients, client)
	maps.Copy(p.faults, faults)
	return nil
}

// over lays the plugins' faults over the built-in ones.
func (p *plugins) over(builtin func(targets.Target) map[string]chaos.Fault) func(targets.Target) map[string]chaos.Fault {
	return func(t targets.Target) map[string]chaos.Fault {
		all := builtin(t)
		maps.Copy(all, p.faults)
		return all
	}
}

// pluginCloseLimit bounds the reverts and the end of a plugin.
const pluginCloseLimit = 10 * time.Second

func (p *plugins) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pluginCloseLimit)
	defer cancel()
	for _, c := range p.clients {
		// The run has reverted everything already, and says so when it could
		// not; a plugin that will not end is killed.
		_ = c.Close(ctx)
	}
}
