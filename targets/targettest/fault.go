package targettest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/metachaos/metachaos/targets"
)

func faultChecks() []Check {
	return []Check{
		{Name: "a restarted node has its documents", Needs: needs(targets.CapRestart, targets.CapFetch), Try: tryRestart},
		{Name: "restarting nobody is an error", Needs: needs(targets.CapRestart), Try: tryRestartNobody},
		{Name: "processes are those of the nodes", Needs: needs(targets.CapProcesses), Try: tryProcesses},
		{Name: "a rule is armed once and cleared often", Needs: needs(targets.CapRules), Try: tryRule},
		{Name: "a rule lapses with its lease", Needs: needs(targets.CapRules), Try: tryLease},
		{Name: "a rule that cannot be is refused", Needs: needs(targets.CapRules), Try: tryBadRule},
		{Name: "pushes can be led through a proxy", Needs: needs(targets.CapProxy, targets.CapWatch), Try: tryProxy},
	}
}

func tryRestart(ctx context.Context, t targets.Target) error {
	return withRouter(ctx, t, func(r *router) error {
		value := []byte("survives")
		if _, err := r.do(ctx, targets.VerbWrite, "item-0", value, targets.RolePrimary); err != nil {
			return err
		}
		op, err := r.op(ctx, targets.VerbRead, "item-0", nil, targets.RolePrimary)
		if err != nil {
			return err
		}
		if err := t.(targets.Restarter).Restart(ctx, op.Node); err != nil {
			return err
		}
		reply, err := r.do(ctx, targets.VerbRead, "item-0", nil, targets.RolePrimary)
		if err != nil {
			return err
		}
		if len(reply.Documents) != 1 || !bytes.Equal(reply.Documents[0].Value, value) {
			return fmt.Errorf("the restarted node has %v; want what was written before", reply.Documents)
		}
		_, err = r.do(ctx, targets.VerbWrite, "item-0", value, targets.RolePrimary)
		return err
	})
}

func tryRestartNobody(ctx context.Context, t targets.Target) error {
	if err := t.(targets.Restarter).Restart(ctx, "nobody"); err == nil {
		return errors.New("restarting a node that does not exist is no error")
	}
	return nil
}

func tryProcesses(ctx context.Context, t targets.Target) error {
	top, err := t.Topology(ctx)
	if err != nil {
		return err
	}
	listed := t.(targets.Processes).Processes()
	if len(listed) == 0 {
		return errors.New("no processes are listed")
	}
	for _, p := range listed {
		n, ok := top.Node(p.Node)
		if !ok || n.PID != p.PID {
			return fmt.Errorf("process %+v is not the one that the topology names: %+v", p, n)
		}
		if now, err := targets.IdentifyProcess(p.PID); err != nil || now.Start != p.Start || now.Boot != p.Boot || !p.Alive() {
			return fmt.Errorf("process %+v does not run as listed: it is %+v, alive: %t", p, now, p.Alive())
		}
	}
	return nil
}

func someRule(t targets.Target) targets.Rule {
	return targets.Rule{ID: "try", Name: t.(targets.Cooperator).Rules()[0], Lease: time.Minute, Seed: 1}
}

func wantDisarmed(ctx context.Context, c targets.Cooperator, id string) error {
	s, err := c.RuleState(ctx, id)
	if err == nil && s.Armed {
		err = fmt.Errorf("it is armed: %+v", s)
	}
	return err
}

func tryRule(ctx context.Context, t targets.Target) error {
	c := t.(targets.Cooperator)
	if err := wantDisarmed(ctx, c, "try"); err != nil {
		return fmt.Errorf("a rule that was never set: %w", err)
	}
	if err := c.ClearRule(ctx, "try"); err != nil {
		return fmt.Errorf("clearing what was never set: %w", err)
	}
	if err := c.SetRule(ctx, someRule(t)); err != nil {
		return err
	}
	if err := c.SetRule(ctx, someRule(t)); err == nil {
		return errors.New("arming an id twice is no error")
	}
	before, err := c.RuleState(ctx, "try")
	if err != nil {
		return err
	}
	if !before.Armed {
		return fmt.Errorf("a rule that was set is in state %+v; arming its id again must not disarm it", before)
	}
	for range 2 {
		if err := c.ClearRule(ctx, "try"); err != nil {
			return err
		}
		s, err := c.RuleState(ctx, "try")
		if err != nil {
			return err
		}
		if s.Armed || s.Hits < before.Hits || s.Seen < before.Seen {
			return fmt.Errorf("a cleared rule is in state %+v; want it disarmed with its counts (%+v)", s, before)
		}
	}
	return nil
}

func tryLease(ctx context.Context, t targets.Target) error {
	c := t.(targets.Cooperator)
	rule := someRule(t)
	rule.Lease = 300 * time.Millisecond
	if err := c.SetRule(ctx, rule); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, rule.Lease+2*time.Second)
	defer cancel()
	return eventually(waiting, func() error {
		return wantDisarmed(ctx, c, rule.ID)
	})
}

func tryBadRule(ctx context.Context, t targets.Target) error {
	c := t.(targets.Cooperator)
	for what, spoil := range map[string]func(*targets.Rule){
		"an unknown name":    func(r *targets.Rule) { r.Name = "no.such.rule" },
		"no lease":           func(r *targets.Rule) { r.Lease = 0 },
		"no id":              func(r *targets.Rule) { r.ID = "" },
		"a selector of none": func(r *targets.Rule) { r.On.Node = "nobody" },
		"an unknown setting": func(r *targets.Rule) { r.With = map[string]string{"no such setting": "1"} },
	} {
		rule := someRule(t)
		spoil(&rule)
		if err := c.SetRule(ctx, rule); err == nil {
			return fmt.Errorf("a rule with %s is no error", what)
		}
		if err := wantDisarmed(ctx, c, rule.ID); err != nil {
			return fmt.Errorf("a rule with %s was refused: %w", what, err)
		}
	}
	return nil
}

// tryProxy leads pushes through a forwarder and back again.
func tryProxy(ctx context.Context, t targets.Target) error {
	p := t.(targets.Proxied)
	addr, err := p.LinkAddr(targets.LinkPush)
	if err != nil {
		return err
	}
	f, err := forward(addr)
	if err != nil {
		return err
	}
	defer f.close()
	direct := make(chan error, 1)
	subscribed := make(chan struct{}, 1)
	go func() {
		direct <- t.(targets.Watcher).Watch(ctx, "direct", func(targets.Push) {
			select {
			case subscribed <- struct{}{}:
			default:
			}
		})
	}()
	select {
	case <-subscribed:
	case <-ctx.Done():
		return fmt.Errorf("no push came: %w", ctx.Err())
	}
	if err := p.Reroute(ctx, targets.LinkPush, f.addr()); err != nil {
		return err
	}
	select {
	case err := <-direct:
		if err == nil {
			return errors.New("the open stream ended without an error when it was rerouted")
		}
	case <-ctx.Done():
		return errors.New("the open stream did not end when it was rerouted")
	}
	if err := onePush(ctx, t); err != nil {
		return err
	}
	if f.connections() == 0 {
		return errors.New("pushes come, but not through the proxy")
	}
	if err := p.Reroute(ctx, targets.LinkPush, ""); err != nil {
		return err
	}
	through := f.connections()
	if err := onePush(ctx, t); err != nil {
		return err
	}
	if f.connections() != through {
		return errors.New("pushes still come through the proxy after they were led back")
	}
	return nil
}

// onePush subscribes until one push has come.
func onePush(ctx context.Context, t targets.Target) error {
	return eventually(ctx, func() error {
		watch, stop := context.WithCancel(ctx)
		defer stop()
		got := false
		err := t.(targets.Watcher).Watch(watch, "watcher", func(targets.Push) { got = true; stop() })
		if !got {
			return errors.Join(errors.New("no push came"), err)
		}
		return nil
	})
}

// forwarder is the least of all proxies.
type forwarder struct {
	listener net.Listener
	to       string
	mu       sync.Mutex
	accepted int
	open     []net.Conn
	all      sync.WaitGroup
}

func forward(to string) (*forwarder, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f := &forwarder{listener: l, to: to}
	f.all.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			f.serve(in)
		}
	})
	return f, nil
}

func (f *forwarder) serve(in net.Conn) {
	out, err := net.Dial("tcp", f.to)
	if err != nil {
		_ = in.Close()
		return
	}
	f.mu.Lock()
	f.accepted++
	f.open = append(f.open, in, out)
	f.mu.Unlock()
	for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
		f.all.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_ = way[0].Close()
		})
	}
}

func (f *forwarder) addr() string { return f.listener.Addr().String() }

func (f *forwarder) connections() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.accepted
}

func (f *forwarder) close() {
	_ = f.listener.Close()
	f.mu.Lock()
	for _, c := range f.open {
		_ = c.Close()
	}
	f.mu.Unlock()
	f.all.Wait()
}
