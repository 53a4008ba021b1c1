package plugin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"

	"github.com/metachaos/metachaos/chaos"
	"github.com/metachaos/metachaos/chaos/plugin/internal/pb"
	"github.com/metachaos/metachaos/targets"
)

// Config says what plugin to start.
type Config struct {
	// Path of the executable; required.
	Path string
	// SHA256 is the checksum that the executable must have, in hexadecimal;
	// required. See [Checksum].
	SHA256 string
	// Args are the arguments of the executable.
	Args []string
	// Logger receives what the plugin logs. Nil logs nothing.
	Logger hclog.Logger
}

// Client is a running plugin. It is safe for concurrent use.
type Client struct {
	path     string
	process  targets.Process
	plugin   *goplugin.Client
	rpc      pb.FaultsClient
	lifeline *os.File           // the write end; its closing is the end of the plugin
	kill     context.CancelFunc // kills the process outright
	open     openInjections
}

// startLimit bounds the start of a plugin when ctx does not.
const startLimit = 15 * time.Second

// Checksum returns the SHA-256 of a file in hexadecimal, as [Config] wants it.
func Checksum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read plugin: %w", err)
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", fmt.Errorf("read plugin: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// Open starts a plugin and returns its faults by name. The caller closes the
// client; until then the faults can be used, also after ctx has ended.
func Open(ctx context.Context, cfg Config) (*Client, map[string]chaos.Fault, error) {
	c, err := start(ctx, cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("start plugin %s: %w", cfg.Path, err)
	}
	described, err := c.rpc.Describe(ctx, &pb.DescribeRequest{})
	if err != nil {
		_ = c.end()
		return nil, nil, fmt.Errorf("ask plugin %s for its faults: %w", cfg.Path, plain(err))
	}
	faults := map[string]chaos.Fault{}
	for _, d := range described.GetDescriptions() {
		f := &remoteFault{client: c, description: descriptionFromWire(d)}
		faults[f.description.Name] = f
	}
	return c, faults, nil
}

func start(ctx context.Context, cfg Config) (*Client, error) {
	sum, err := hex.DecodeString(cfg.SHA256)
	if err != nil || len(sum) != sha256.Size {
		return nil, fmt.Errorf("the checksum is %q: want the 64 hexadecimal digits that sha256sum prints for it", cfg.SHA256)
	}
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make its lifeline: %w", err)
	}
	defer func() { _ = theirs.Close() }()
	// The plugin must outlive ctx to revert, but a start that is cut off must
	// not leave it behind.
	life, kill := context.WithCancel(context.WithoutCancel(ctx))
	cmd := exec.CommandContext(life, cfg.Path, cfg.Args...)
	cmd.ExtraFiles = []*os.File{theirs} // the first becomes descriptor 3
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", lifelineVariable, lifelineFD))
	c := &Client{path: cfg.Path, lifeline: ours, kill: kill, plugin: goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig:  handshake(),
		VersionedPlugins: pluginSets(nil),
		Cmd:              cmd,
		SkipHostEnv:      true, // it is in cmd.Env already
		SecureConfig:     &goplugin.SecureConfig{Checksum: sum, Hash: sha256.New()},
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		AutoMTLS:         true,
		StartTimeout:     startLimit,
		Logger:           cfg.Logger,
	})}
	started := context.AfterFunc(ctx, kill)
	err = c.connect(cmd)
	if !started() {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = c.end()
		return nil, err
	}
	return c, nil
}

func (c *Client) connect(cmd *exec.Cmd) error {
	protocol, err := c.plugin.Client()
	if errors.Is(err, goplugin.ErrChecksumsDoNotMatch) {
		return fmt.Errorf("%w: it is not the file that was pinned, and it was not run", err)
	}
	if err != nil {
		return err
	}
	raw, err := protocol.Dispense(pluginSetName)
	if err != nil {
		return err
	}
	c.rpc = raw.(pb.FaultsClient) // what wire.GRPCClient returns
	c.process, err = targets.IdentifyProcess(cmd.Process.Pid)
	return err
}

// Process identifies the plugin's process.
func (c *Client) Process() targets.Process { return c.process }

// Close makes the plugin revert whatever is left and ends it. The error names
// what could not be shown to be reverted; each is a [chaos.StuckError]. It
// waits for slow reverts as long as ctx lasts. Closing twice is harmless.
func (c *Client) Close(ctx context.Context) error {
	// The library ends a plugin two seconds after asking it to exit, reverting
	// or not, so the reverting comes first.
	var errs []error
	answer, err := c.rpc.RevertAll(ctx, &pb.RevertAllRequest{})
	if err == nil { // it holds what it names, and nothing else
		held := map[string]chaos.Reversal{}
		for _, r := range answer.GetResults() {
			held[r.GetId()] = reversalFromWire(r.GetReversal())
		}
		c.open.settleAll(held)
	}
	if left := c.open.left(); len(left) > 0 {
		if err != nil {
			errs = append(errs, fmt.Errorf("close plugin %s: %w", c.path, plain(err)))
		}
		errs = append(errs, left...)
	}
	return errors.Join(append(errs, c.end())...)
}

// end ends the process without asking for reverts. The closed lifeline makes a
// plugin that is still there revert by itself.
func (c *Client) end() error {
	err := c.lifeline.Close()
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	c.plugin.Kill()
	c.kill()
	return err
}
