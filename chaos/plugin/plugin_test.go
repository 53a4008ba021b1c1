package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/metachaos/metachaos/chaos"
	"github.com/metachaos/metachaos/chaos/chaostest"
	"github.com/metachaos/metachaos/chaos/faults"
	"github.com/metachaos/metachaos/targets"
)

// The test binary plays the plugin and the host that is killed, too. Its first
// argument says which.
const (
	roleFreeze  = "plugin-serve-freeze" // the built-in fault, as a plugin
	roleFuture  = "plugin-serve-future" // speaks a protocol that this host does not know
	roleNoisy   = "plugin-serve-noisy"  // writes to stdout before the handshake
	roleSilent  = "plugin-serve-silent" // never says a word
	roleDoomed  = "host-that-is-killed" // injects and waits for its death
	doomedReady = "injected by plugin "
)

func TestMain(m *testing.M) {
	role := ""
	if len(os.Args) > 1 {
		role = os.Args[1]
	}
	var err error
	switch role {
	case roleFreeze:
		err = Serve(faults.PrimaryFreeze(nil, faults.Options{}), &slowFault{})
	case roleFuture:
		goplugin.Serve(&goplugin.ServeConfig{HandshakeConfig: handshake(), GRPCServer: func(o []grpc.ServerOption) *grpc.Server { return grpc.NewServer(o...) },
			VersionedPlugins: map[int]goplugin.PluginSet{99: {pluginSetName: &wire{server: newGuest(nil)}}}})
	case roleNoisy:
		fmt.Println("Welcome to my plugin!")
		err = Serve(faults.PrimaryFreeze(nil, faults.Options{}))
	case roleSilent:
		select {}
	case roleDoomed:
		err = beDoomed(os.Args[2], os.Args[3])
	default:
		m.Run()
	}
	if err != nil {
		panic(err)
	}
}

// slowFault is a fault whose reverting takes longer than go-plugin waits for
// an exit. Its effect is a file.
type slowFault struct{}

var _ chaos.Fault = (*slowFault)(nil)

func (*slowFault) Describe() chaos.Description {
	return chaos.Description{Name: "toy.slow", Summary: "Slow."}
}

func (*slowFault) Validate(chaos.Step) error { return nil }

func (*slowFault) Plan(_ context.Context, s chaos.Step, _ chaos.Scope) (chaos.Handle, error) {
	var c struct {
		File string `yaml:"file"`
	}
	err := s.Decode(&c)
	return chaos.Handle{ID: s.ID, Fault: s.Fault, Touches: []string{c.File}, State: []byte("{}")}, err
}

func (*slowFault) Inject(_ context.Context, h chaos.Handle) error {
	return os.WriteFile(h.Touches[0], nil, 0o600)
}

func (*slowFault) Status(_ context.Context, h chaos.Handle) (chaos.Status, error) {
	_, err := os.Stat(h.Touches[0])
	return chaos.Status{Effective: err == nil, Evidence: "the file"}, nil
}

func (*slowFault) Revert(_ context.Context, h chaos.Handle) chaos.Reversal {
	if _, err := os.Stat(h.Touches[0]); err == nil {
		time.Sleep(3 * time.Second)
	}
	_ = os.Remove(h.Touches[0])
	return chaos.Reversal{Undone: chaos.Reverted, Evidence: "the file is gone"}
}

func (f *slowFault) Recover(ctx context.Context, h chaos.Handle) chaos.Reversal {
	return f.Revert(ctx, h)
}

// log collects what plugins log.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func configOf(t *testing.T, role string) Config {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	sum, err := Checksum(self)
	if err != nil {
		t.Fatal(err)
	}
	return Config{Path: self, SHA256: sum, Args: []string{role}}
}

func openFreeze(t *testing.T) (*Client, map[string]chaos.Fault) {
	t.Helper()
	c, all, err := Open(t.Context(), configOf(t, roleFreeze))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
		if c.Process().Alive() {
			t.Error("the plugin outlives its client")
		}
	})
	return c, all
}

// scopeOf is a target with one primary.
func scopeOf(p targets.Process) chaos.Scope {
	return chaos.Scope{
		Info: targets.Info{Kind: "toy", Version: "1", Capabilities: []targets.Capability{targets.CapProcesses}},
		Topology: targets.Topology{Documents: 3, Objects: []targets.Object{{Kind: targets.KindRoute, ID: "r1"}},
			Nodes: []targets.Node{{ID: p.Node, Shard: "s1", Role: targets.RolePrimary, Index: 1, Addr: "127.0.0.1:9", PID: p.PID}}},
		Processes: []targets.Process{p},
	}
}

func freezeStep(id string) chaos.Step {
	return chaos.Step{ID: id, Fault: "primary.freeze", For: time.Second, Decode: chaostest.With("mode: stop"), On: targets.Selector{Shard: "s1"}}
}

func mustPlan(t *testing.T, f chaos.Fault, step chaos.Step, p targets.Process) chaos.Handle {
	t.Helper()
	h, err := f.Plan(t.Context(), step, scopeOf(p))
	if err != nil {
		t.Fatal(err)
	}
	h.Lease = time.Minute
	return h
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("still not so: %s", what)
		}
	}
}

func TestConformanceThroughAPlugin(t *testing.T) {
	_, all := openFreeze(t)
	_, fresh := openFreeze(t)
	n := 0
	chaostest.Run(t, func(t *testing.T) chaostest.Harness {
		t.Helper()
		victim := chaostest.StartSleeper(t, "s1-0")
		n++
		nothing := freezeStep("nothing")
		nothing.On = targets.Selector{Shard: "s9"}
		return chaostest.Harness{
			Fault: renamed{all["primary.freeze"], n}, Fresh: fresh["primary.freeze"], Step: freezeStep("try"), Nothing: nothing,
			Scope: func(context.Context) (chaos.Scope, error) { return scopeOf(victim.Process), nil },
			State: func(*testing.T) string { return fmt.Sprint(victim.PID, victim.State() == 'T') },
		}
	})
}

// renamed makes the suite's ids differ from test to test, since the plugin
// behind them is one and takes an id once.
type renamed struct {
	chaos.Fault
	n int
}

func (r renamed) rename(h chaos.Handle) chaos.Handle {
	h.ID = fmt.Sprintf("%s-%d", h.ID, r.n)
	return h
}

func (r renamed) Inject(ctx context.Context, h chaos.Handle) error {
	return r.Fault.Inject(ctx, r.rename(h))
}

func (r renamed) Status(ctx context.Context, h chaos.Handle) (chaos.Status, error) {
	return r.Fault.Status(ctx, r.rename(h))
}

func (r renamed) Revert(ctx context.Context, h chaos.Handle) chaos.Reversal {
	return r.Fault.Revert(ctx, r.rename(h))
}

func TestPluginDescribesAndNeeds(t *testing.T) {
	_, all := openFreeze(t)
	local := faults.PrimaryFreeze(nil, faults.Options{})
	if got, want := fmt.Sprintf("%+v", all["primary.freeze"].Describe()), fmt.Sprintf("%+v", local.Describe()); got != want {
		t.Errorf("described as\n%s\nwant\n%s", got, want)
	}
	stall := freezeStep("q")
	stall.Decode = chaostest.With("mode: write-stall")
	needs, rule := all["primary.freeze"].(chaos.StepNeeds).NeedsOf(stall)
	if len(needs) != 1 || needs[0] != targets.CapRules || rule != "primary.freeze" {
		t.Errorf("needs %v and rule %q", needs, rule)
	}
	stall.Decode = chaostest.With("mode: sideways")
	if err := all["primary.freeze"].Validate(stall); err == nil || err.Error() != `mode is "sideways": want stop or write-stall` {
		t.Errorf("error %v", err)
	}
}

func TestPluginRevertsWhenItsHostIsKilled(t *testing.T) {
	victim := chaostest.StartSleeper(t, "s1-0")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	host := exec.Command(self, roleDoomed, strconv.Itoa(victim.PID), string(victim.Node))
	var out log
	host.Stdout, host.Stderr = &out, os.Stderr
	// The plugin inherits neither: it must not hold up the end of the host.
	host.WaitDelay = 10 * time.Second
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = host.Process.Kill(); _ = host.Wait() }()
	eventually(t, "the host has injected", func() bool { return strings.HasSuffix(out.String(), "\n") })
	var pid int
	if _, err := fmt.Sscanf(out.String(), doomedReady+"%d", &pid); err != nil {
		t.Fatalf("the host said %q", out.String())
	}
	guest, err := targets.IdentifyProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if victim.State() != 'T' {
		t.Fatalf("the victim's state is %c, want it stopped", victim.State())
	}
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the plugin has reverted", func() bool { return victim.State() != 'T' })
	eventually(t, "the plugin is gone", func() bool { return !guest.Alive() })
	if !victim.Alive() {
		t.Error("the victim is dead")
	}
}

// beDoomed is the host of the test above.
func beDoomed(pid, node string) error {
	var victim targets.Process
	var n int
	if _, err := fmt.Sscan(pid, &n); err != nil {
		return err
	}
	victim, err := targets.IdentifyProcess(n)
	if err != nil {
		return err
	}
	victim.Node = targets.NodeID(node)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	sum, err := Checksum(self)
	if err != nil {
		return err
	}
	ctx := context.Background()
	c, all, err := Open(ctx, Config{Path: self, SHA256: sum, Args: []string{roleFreeze},
		Logger: hclog.New(&hclog.LoggerOptions{Output: os.Stderr, Level: hclog.Error})})
	if err != nil {
		return err
	}
	h, err := all["primary.freeze"].Plan(ctx, freezeStep("doomed"), scopeOf(victim))
	if err != nil {
		return err
	}
	h.Lease = time.Minute
	if err := all["primary.freeze"].Inject(ctx, h); err != nil {
		return err
	}
	fmt.Printf("%s%d\n", doomedReady, c.Process().PID)
	select {}
}

func TestPluginRevertsWhenTheLeaseLapses(t *testing.T) {
	_, all := openFreeze(t)
	victim := chaostest.StartSleeper(t, "s1-0")
	h := mustPlan(t, all["primary.freeze"], freezeStep("brief"), victim.Process)
	h.Lease = 200 * time.Millisecond
	if err := all["primary.freeze"].Inject(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the lease has lapsed", func() bool { return victim.State() != 'T' })
	if rev := all["primary.freeze"].Revert(t.Context(), h); rev.Undone != chaos.Reverted {
		t.Errorf("revert after that: %+v", rev)
	}
	if err := all["primary.freeze"].Inject(t.Context(), h); err == nil || !strings.Contains(err.Error(), "injected before") {
		t.Errorf("injecting again: %v", err)
	}
	h.ID, h.Lease = "no lease", 0
	if err := all["primary.freeze"].Inject(t.Context(), h); err == nil || !strings.Contains(err.Error(), "lease") {
		t.Errorf("injecting without a lease: %v", err)
	}
}

func TestPluginRevertsOnSIGTERM(t *testing.T) {
	c, all := openFreeze(t)
	victim := chaostest.StartSleeper(t, "s1-0")
	f := all["primary.freeze"]
	h := mustPlan(t, f, freezeStep("q"), victim.Process)
	if err := f.Inject(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if err := chaos.Signal(c.Process(), 15); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the plugin is gone", func() bool { return !c.Process().Alive() })
	if victim.State() == 'T' {
		t.Error("the victim is stopped still")
	}
	rev := f.Revert(t.Context(), h)
	if rev.Undone != chaos.RevertUnknown || !strings.Contains(rev.Evidence, "no answer") {
		t.Errorf("revert by a plugin that is gone: %+v", rev)
	}
	c.open.settle(h.ID, chaos.Reversal{Undone: chaos.Reverted}) // it is, as seen above
}

func TestCloseWaitsForSlowReverts(t *testing.T) {
	c, all, err := Open(t.Context(), configOf(t, roleFreeze))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "effect")
	slow := all["toy.slow"]
	h := mustPlan(t, slow, chaos.Step{ID: "slow", Fault: "toy.slow", Decode: chaostest.With("file: " + file)}, targets.Process{Node: "n"})
	if err := slow.Inject(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Close(t.Context()), c.Close(t.Context())); err != nil {
		t.Errorf("close: %v", err)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the effect is there still: %v", err)
	}
}

func TestCloseNamesWhatIsLeft(t *testing.T) {
	c, all, err := Open(t.Context(), configOf(t, roleFreeze))
	if err != nil {
		t.Fatal(err)
	}
	victim := chaostest.StartSleeper(t, "s1-0")
	f := all["primary.freeze"]
	h := mustPlan(t, f, freezeStep("left"), victim.Process)
	if err := f.Inject(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if err := chaos.Signal(c.Process(), 9); err != nil { // it cannot revert any more
		t.Fatal(err)
	}
	eventually(t, "the plugin is gone", func() bool { return !c.Process().Alive() })
	if stuck := chaos.Stuck(c.Close(t.Context())); len(stuck) != 1 || stuck[0].ID != "left" || stuck[0].Reversal.HowTo == "" {
		t.Errorf("stuck: %v", stuck)
	}
	_, fresh := openFreeze(t)
	if rev := fresh["primary.freeze"].Recover(t.Context(), h); rev.Undone != chaos.Reverted || victim.State() == 'T' {
		t.Errorf("recovery: %+v", rev)
	}
}

func TestOpenRefuses(t *testing.T) {
	wrongSum := configOf(t, roleFreeze)
	wrongSum.SHA256 = strings.Repeat("ab", 32)
	noSum := configOf(t, roleFreeze)
	noSum.SHA256 = ""
	missing := configOf(t, roleFreeze)
	missing.Path = filepath.Join(t.TempDir(), "none")
	tests := []struct {
		name string
		cfg  Config
		want string
	}{
		{"a wrong checksum", wrongSum, "it was not run"},
		{"no checksum", noSum, "want the 64 hexadecimal digits"},
		{"an unknown protocol version", configOf(t, roleFuture), "99"},
		{"noise before the handshake", configOf(t, roleNoisy), "Welcome to my plugin!"},
		{"a missing file", missing, "no such file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, _, err := Open(t.Context(), tt.cfg)
			if err == nil {
				_ = c.Close(t.Context())
				t.Fatal("it was opened")
			}
			if !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), tt.cfg.Path) {
				t.Errorf("error %v, want %q and the path", err, tt.want)
			}
		})
	}
}

func TestOpenGivesUpWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, _, err := Open(ctx, configOf(t, roleSilent))
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 10*time.Second {
		t.Errorf("error %v after %v", err, time.Since(began))
	}
}

func TestAwaitOrphanedNoticesAnotherParent(t *testing.T) {
	// A parent that never was stands for one that is gone.
	done := make(chan struct{})
	go func() { defer close(done); awaitOrphaned(t.Context(), -1, time.Hour) }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Error("it waits for a parent that is gone")
	}
}
