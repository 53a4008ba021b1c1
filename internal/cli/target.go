package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/metachaos/metachaos/chaos"
	"github.com/metachaos/metachaos/internal/experiment"
	"github.com/metachaos/metachaos/internal/suggest"
	"github.com/metachaos/metachaos/plans"
	"github.com/metachaos/metachaos/targets"
)

// keepCommand is the hidden command that keeps a target up.
const keepCommand = "target-keep"

const (
	upLimit   = 30 * time.Second
	downLimit = 30 * time.Second
)

// upState is what target up leaves for target down and for people.
type upState struct {
	Kind     string           `json:"kind"`
	Keeper   targets.Process  `json:"keeper"`
	Topology targets.Topology `json:"topology"`
}

func newTarget(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "target",
		Short: "Start a target to explore, and stop it",
		Long: `target starts a target that stays until it is stopped, for exploring it by hand:
the nodes of the reference target speak gRPC with reflection on, so that grpcurl
works on the addresses that target up prints. Runs start targets of their own.`,
	}
	c.AddCommand(newTargetUp(a), newTargetDown(a))
	return c
}

func newTargetUp(a *app) *cobra.Command {
	var set []string
	var asJSON bool
	c := &cobra.Command{
		Use:   "up [KIND]",
		Short: "Start a target in the background and print its nodes",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			kind := "reference"
			if len(args) == 1 {
				kind = args[0]
			}
			state, err := a.targetUp(c.Context(), kind, set)
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(state)
			}
			return a.printListing(nodeListing(state.Topology), false)
		},
	}
	c.Flags().StringArrayVar(&set, "set", nil, "a setting KEY=VALUE of the target, as in a plan's target.with; repeat for more")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func newTargetDown(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Stop the target that target up started, and remove what it left",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return a.targetDown(c.Context()) },
	}
}

func nodeListing(t targets.Topology) listing {
	l := listing{columns: []string{"node", "shard", "role", "address", "pid"}}
	for _, n := range t.Nodes {
		l.rows = append(l.rows, []string{string(n.ID), n.Shard, string(n.Role), n.Addr, fmt.Sprint(n.PID)})
	}
	return l
}

// targetUp starts a keeper in a session of its own and waits until the
// target stands.
func (a *app) targetUp(ctx context.Context, kind string, set []string) (upState, error) {
	path, err := upPath()
	if err != nil {
		return upState{}, err
	}
	if state, err := readUp(path); err == nil && state.Keeper.Alive() {
		return state, fmt.Errorf("a target is up already (%s, kept by process %d): metachaos target down stops it", state.Kind, state.Keeper.PID)
	}
	with, err := settings(kind, set)
	if err != nil {
		return upState{}, withCode(exitConfig, err)
	}
	self, err := os.Executable()
	if err != nil {
		return upState{}, fmt.Errorf("find this program: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return upState{}, fmt.Errorf("make the state folder: %w", err)
	}
	log, err := os.Create(path + ".log")
	if err != nil {
		return upState{}, fmt.Errorf("make the target's log: %w", err)
	}
	defer log.Close()
	keeper := exec.Command(self, keepCommand, kind, with)
	keeper.Stdout, keeper.Stderr = log, log
	keeper.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := keeper.Start(); err != nil {
		return upState{}, fmt.Errorf("start the target's keeper: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- keeper.Wait() }()
	return awaitUp(ctx, path, keeper.Process.Pid, ended)
}

// awaitUp waits for the keeper to say that the target stands.
func awaitUp(ctx context.Context, path string, pid int, ended <-chan error) (upState, error) {
	ctx, cancel := context.WithTimeout(ctx, upLimit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if state, err := readUp(path); err == nil && state.Keeper.PID == pid {
			return state, nil
		}
		select {
		case err := <-ended:
			said, _ := os.ReadFile(path + ".log")
			_ = os.Remove(path + ".log")
			return upState{}, fmt.Errorf("the target did not start (%w): %s", err, strings.TrimSpace(string(said)))
		case <-ctx.Done():
			return upState{}, fmt.Errorf("the target did not start within %v; see %s.log", upLimit, path)
		case <-tick.C:
		}
	}
}

func (a *app) targetDown(ctx context.Context) error {
	path, err := upPath()
	if err != nil {
		return err
	}
	state, err := readUp(path)
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintln(a.Err, "metachaos: no target is up")
		return nil
	} else if err != nil {
		return err
	}
	if state.Keeper.Alive() {
		if err := chaos.Signal(state.Keeper, syscall.SIGTERM); err != nil {
			return fmt.Errorf("stop the target's keeper: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, downLimit)
	defer cancel()
	for state.Keeper.Alive() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the target's keeper, process %d, did not end within %v", state.Keeper.PID, downLimit)
		case <-time.After(20 * time.Millisecond):
		}
	}
	// A keeper that was killed has not tidied up.
	j, err := openJournal()
	if err != nil {
		return err
	}
	if err := a.recoverLeftovers(ctx, j); err != nil {
		return err
	}
	removeUp(path)
	return nil
}

func newTargetKeep(a *app) *cobra.Command {
	return &cobra.Command{
		Use:    keepCommand + " KIND WITH",
		Short:  "Keep a target up (started by metachaos target up)",
		Hidden: true,
		Args:   cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := a.untilSignal(c.Context())
			defer stop()
			return a.keep(ctx, builtinKinds(a.Err)[args[0]], args[1])
		},
	}
}

// keep starts a target, tells of it, and takes it down when ctx ends.
func (a *app) keep(ctx context.Context, kind experiment.Kind, with string) error {
	j, err := openJournal()
	if err != nil {
		return err
	}
	path, err := upPath()
	if err != nil {
		return err
	}
	held, err := experiment.Hold(ctx, kind, decoderOf(with), j)
	if err != nil {
		return err
	}
	self, err := targets.IdentifyProcess(os.Getpid())
	if err == nil {
		err = writeUp(path, upState{Kind: kind.Name, Keeper: self, Topology: held.Topology})
	}
	if err == nil {
		<-ctx.Done()
	}
	closing := held.Close(context.WithoutCancel(ctx))
	removeUp(path)
	return errors.Join(err, closing)
}

// settings checks the settings of a target and returns them as YAML.
func settings(kind string, set []string) (string, error) {
	kinds := builtinKinds(nil)
	k, ok := kinds[kind]
	if !ok {
		return "", fmt.Errorf("unknown target kind %q: %s", kind, suggest.Name(kind, slices.Sorted(maps.Keys(kinds))))
	}
	var with strings.Builder
	for _, pair := range set {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return "", fmt.Errorf("bad --set %q, want KEY=VALUE", pair)
		}
		fmt.Fprintf(&with, "%s: %s\n", key, value)
	}
	_, err := k.Check(decoderOf(with.String()))
	return with.String(), err
}

func decoderOf(with string) func(into any) error {
	return func(into any) error { return plans.DecodeText("--set", with, into) }
}

func upPath() (string, error) {
	dir, err := stateDir()
	return filepath.Join(dir, "target.json"), err
}

func readUp(path string) (upState, error) {
	var s upState
	b, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("read %s: %w", path, err)
	}
	return s, nil
}

// writeUp writes in one step, so that a reader sees all or nothing.
func writeUp(path string, s upState) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err == nil {
		err = os.WriteFile(path+".new", b, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("write the target's state: %w", err)
	}
	return nil
}

// removeUp removes what target up left, as far as it is there.
func removeUp(path string) {
	_ = os.Remove(path)
	_ = os.Remove(path + ".log")
	removeEmptyState()
}
