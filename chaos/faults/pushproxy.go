package faults

import (
	"context"
	"fmt"
	"net"
	"sync"

	"github.com/metachaos/metachaos/chaos"
	"github.com/metachaos/metachaos/chaos/proxy"
	"github.com/metachaos/metachaos/targets"
)

// pushProxies drops pushes by a proxy that it puts into the push link for as
// long as the injection lasts. The link takes one proxy at a time.
type pushProxies struct {
	target targets.Target // may be nil
	opts   Options
	held   claims[targets.Link]

	mu     sync.Mutex
	active map[string]*pushProxy // by injection
	ended  map[string]string     // evidence by injection, for a second revert
}

type pushProxy struct {
	proxy *proxy.Proxy
	rule  *proxy.Armed
	note  string // about heartbeats
}

// proxyState is the record of a proxy. The proxy lives in the controller.
type proxyState struct {
	Method     string          `json:"method"`
	Share      float64         `json:"share"`
	Count      uint64          `json:"count,omitempty"`
	Seed       uint64          `json:"seed"`
	Backend    string          `json:"backend"`
	Controller targets.Process `json:"controller"`
}

func (s proxyState) touches() string {
	return fmt.Sprintf("link %s: through a proxy to %s that drops a share of %v of the messages of %s",
		targets.LinkPush, s.Backend, s.Share, s.Method)
}

func (x *pushProxies) proxied() (targets.Proxied, error) {
	if x.target == nil {
		return nil, errNoTarget
	}
	t, ok := x.target.(targets.Proxied)
	if !ok {
		return nil, fmt.Errorf("the target %q lets no proxy into its links", x.target.Info().Kind)
	}
	return t, nil
}

func (x *pushProxies) plan(step chaos.Step, c pushDropConfig) (proxyState, error) {
	t, err := x.proxied()
	if err != nil {
		return proxyState{}, err
	}
	backend, err := t.LinkAddr(targets.LinkPush)
	if err != nil {
		return proxyState{}, fmt.Errorf("find the push link: %w", err)
	}
	controller, err := x.opts.controller()
	return proxyState{Method: c.Method, Share: c.Share, Count: c.Count, Seed: step.Seed,
		Backend: backend, Controller: controller}, err
}

func (x *pushProxies) inject(ctx context.Context, id string, s proxyState) error {
	t, err := x.proxied()
	if err != nil {
		return err
	}
	if err := x.held.take(id, []targets.Link{targets.LinkPush}); err != nil {
		return fmt.Errorf("put a proxy into the link: %w", err)
	}
	p, err := proxy.Listen(ctx, proxy.Config{Backend: s.Backend})
	if err != nil {
		return err
	}
	rule := proxy.Rule{Method: s.Method, Direction: proxy.ToClient, Share: s.Share, Count: s.Count, Seed: s.Seed}
	note := "heartbeats pass"
	if rule.Keep, err = proxy.KeepHeartbeats(ctx, s.Backend); err != nil {
		note = "heartbeats cannot be told apart and are dropped too: " + err.Error()
	}
	armed, err := p.Arm(rule)
	if err != nil {
		_ = p.Close()
		return err
	}
	x.mu.Lock()
	if x.active == nil {
		x.active, x.ended = map[string]*pushProxy{}, map[string]string{}
	}
	x.active[id] = &pushProxy{proxy: p, rule: armed, note: note}
	x.mu.Unlock()
	// Only now that revert can find the proxy may clients come to it.
	if err := t.Reroute(ctx, targets.LinkPush, p.Addr()); err != nil {
		return fmt.Errorf("route the push link through the proxy: %w", err)
	}
	return nil
}

func (x *pushProxies) get(id string) (p *pushProxy, ended string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.active[id], x.ended[id]
}

func (x *pushProxies) status(id string) chaos.Status {
	p, ended := x.get(id)
	if p == nil {
		return chaos.Status{Evidence: "no proxy is in the link " + ended}
	}
	_, dropped := p.rule.Counts()
	return chaos.Status{Effective: dropped > 0, Evidence: p.evidence()}
}

func (p *pushProxy) evidence() string {
	seen, dropped := p.rule.Counts()
	all := p.proxy.Counts(proxy.ToClient)
	return fmt.Sprintf("the proxy dropped %d of %d pushes (%d messages came, %d went on); %s",
		dropped, seen, all.Received, all.Sent, p.note)
}

func (x *pushProxies) revert(ctx context.Context, id string) chaos.Reversal {
	p, ended := x.get(id)
	if p == nil {
		x.held.release(id) // an inject that failed before it had a proxy
		return chaos.Reversal{Undone: chaos.Reverted, Evidence: "no proxy is in the link " + ended}
	}
	p.rule.Disarm() // from here on the proxy only passes on, whatever fails below
	t, err := x.proxied()
	if err == nil {
		err = t.Reroute(ctx, targets.LinkPush, "")
	}
	if err != nil {
		return chaos.Reversal{Undone: chaos.NotReverted,
			Evidence: fmt.Sprintf("the link still goes through a proxy that drops nothing any more: %v", err),
			HowTo:    "end this program: the proxy ends with it"}
	}
	if err := p.proxy.Close(); err != nil {
		return unknown(fmt.Errorf("close the proxy: %w", err), "end this program: the proxy ends with it")
	}
	if answers(ctx, p.proxy.Addr()) {
		return unknown(fmt.Errorf("something still answers at the proxy's address %s", p.proxy.Addr()), "")
	}
	evidence := p.evidence()
	x.mu.Lock()
	delete(x.active, id)
	x.ended[id] = "any more: " + evidence
	x.mu.Unlock()
	x.held.release(id)
	return chaos.Reversal{Undone: chaos.Reverted, Evidence: evidence}
}

// answers reports whether anybody accepts connections at addr.
func answers(ctx context.Context, addr string) bool {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// recover has nothing to do but to see that the controller is gone, and the
// proxy with it.
func (s proxyState) recover() chaos.Reversal {
	if s.Controller.Alive() {
		return chaos.Reversal{Undone: chaos.NotReverted,
			Evidence: fmt.Sprintf("process %d, in which the proxy lives, is alive", s.Controller.PID),
			HowTo:    fmt.Sprintf("end process %d", s.Controller.PID)}
	}
	return chaos.Reversal{Undone: chaos.Reverted, Evidence: "the proxy is gone with the controller"}
}
