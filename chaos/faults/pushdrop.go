package faults

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/metachaos/metachaos/chaos"
	"github.com/metachaos/metachaos/targets"
)

const namePushDrop = "push.drop"

// Where pushes are dropped.
const (
	viaControl = "control" // by a rule of the control plane
	viaProxy   = "proxy"   // by a proxy in the push link
)

type pushDrop struct {
	ruling
	proxying pushProxies
}

var (
	_ chaos.Fault     = (*pushDrop)(nil)
	_ chaos.StepNeeds = (*pushDrop)(nil)
)

// PushDrop returns the fault that makes pushes vanish.
func PushDrop(t targets.Target, opts Options) chaos.Fault {
	return &pushDrop{ruling: ruling{target: t, opts: opts}, proxying: pushProxies{target: t, opts: opts}}
}

type pushDropConfig struct {
	Via    string  `yaml:"via"`
	Share  float64 `yaml:"share"`
	Count  uint64  `yaml:"count"`
	Object string  `yaml:"object"`
	Client string  `yaml:"client"`
	Method string  `yaml:"method"`
}

// pushDropState is the record of either way.
type pushDropState struct {
	Rule  *ruleState  `json:"rule,omitempty"`
	Proxy *proxyState `json:"proxy,omitempty"`
}

func (f *pushDrop) Describe() chaos.Description {
	return chaos.Description{
		Name:    namePushDrop,
		Summary: "Pushes of the control plane to clients vanish; heartbeats pass.",
		Fields: []chaos.Field{
			{Name: "via", Type: "control | proxy", Default: viaControl,
				Summary: "Who drops: the control plane itself, or a proxy in the push link."},
			{Name: "share", Type: "number", Default: "1", Summary: "The share of the pushes that vanish, above 0 and up to 1."},
			{Name: "count", Type: "integer", Default: "0", Summary: "How many vanish at most; 0 is any number."},
			{Name: "object", Type: "kind/id", Default: "any", Summary: "Only pushes about this object; via control alone."},
			{Name: "client", Type: "string", Default: "any", Summary: "Only pushes to clients whose name begins so; via control alone."},
			{Name: "method", Type: "string", Default: "Watch",
				Summary: "The gRPC method that streams pushes, or its last part; via proxy alone. " +
					"Heartbeats are told by a bool field of that name, if the server offers reflection; if not, they vanish too."},
		},
	}
}

func (f *pushDrop) configure(step chaos.Step) (pushDropConfig, error) {
	c := pushDropConfig{Via: viaControl, Share: 1}
	if err := decode(step, &c); err != nil {
		return c, err
	}
	if err := checkShare(c.Share); err != nil {
		return c, err
	}
	switch c.Via {
	case viaControl:
		if c.Method != "" {
			return c, fmt.Errorf("method is %q, but it counts with via: %s alone", c.Method, viaProxy)
		}
	case viaProxy:
		if c.Object != "" || c.Client != "" {
			return c, fmt.Errorf("object and client need via: %s, since a proxy does not know what a push is about", viaControl)
		}
		if step.On != (targets.Selector{}) {
			return c, fmt.Errorf("on is %s, but a proxy stands in the link of all clients: leave on out", describe(step.On))
		}
		if c.Method == "" {
			c.Method = "Watch"
		}
	default:
		return c, fmt.Errorf("via is %q: want %s or %s", c.Via, viaControl, viaProxy)
	}
	if c.Object != "" {
		if _, err := targets.ParseObject(c.Object); err != nil {
			return c, err
		}
	}
	return c, nil
}

func (f *pushDrop) Validate(step chaos.Step) error {
	_, err := f.configure(step)
	return err
}

// NeedsOf names the capability that the step's way works by.
func (f *pushDrop) NeedsOf(step chaos.Step) ([]targets.Capability, string) {
	if c, err := f.configure(step); err == nil && c.Via == viaProxy {
		return []targets.Capability{targets.CapProxy}, ""
	}
	return []targets.Capability{targets.CapRules}, namePushDrop
}

func (f *pushDrop) Plan(_ context.Context, step chaos.Step, scope chaos.Scope) (chaos.Handle, error) {
	c, err := f.configure(step)
	if err != nil {
		return chaos.Handle{}, err
	}
	if c.Via == viaProxy {
		s, err := f.proxying.plan(step, c)
		if err != nil {
			return chaos.Handle{}, err
		}
		return newHandle(step, []string{s.touches()}, pushDropState{Proxy: &s})
	}
	if err := existingObject(scope.Topology, c.Object); err != nil {
		return chaos.Handle{}, err
	}
	s, err := f.plan(step, scope, namePushDrop, c.ruleWith())
	if err != nil {
		return chaos.Handle{}, err
	}
	return newHandle(step, []string{s.touches()}, pushDropState{Rule: &s})
}

// ruleWith leaves out what is not set, so that a target sees conditions only.
func (c pushDropConfig) ruleWith() map[string]string {
	with := map[string]string{"share": strconv.FormatFloat(c.Share, 'g', -1, 64)}
	if c.Count > 0 {
		with["count"] = strconv.FormatUint(c.Count, 10)
	}
	if c.Object != "" {
		with["object"] = c.Object
	}
	if c.Client != "" {
		with["client"] = c.Client
	}
	return with
}

// existingObject refuses an object of a kind that the topology lists, but that
// it does not list.
func existingObject(t targets.Topology, text string) error {
	if text == "" {
		return nil
	}
	object, err := targets.ParseObject(text)
	if err != nil {
		return err
	}
	sameKind := slices.ContainsFunc(t.Objects, func(o targets.Object) bool { return o.Kind == object.Kind })
	if sameKind && !slices.Contains(t.Objects, object) {
		return fmt.Errorf("object %s does not exist: the target has %d objects, from %s to %s",
			object, len(t.Objects), t.Objects[0], t.Objects[len(t.Objects)-1])
	}
	return nil
}

func (f *pushDrop) Inject(ctx context.Context, h chaos.Handle) error {
	var s pushDropState
	if err := decodeState(h, &s); err != nil {
		return err
	}
	if s.Proxy != nil {
		return f.proxying.inject(ctx, h.ID, *s.Proxy)
	}
	return f.inject(ctx, h, *s.Rule)
}

func (f *pushDrop) Status(ctx context.Context, h chaos.Handle) (chaos.Status, error) {
	var s pushDropState
	if err := decodeState(h, &s); err != nil {
		return chaos.Status{}, err
	}
	if s.Proxy != nil {
		return f.proxying.status(h.ID), nil
	}
	return f.status(ctx, *s.Rule)
}

func (f *pushDrop) Revert(ctx context.Context, h chaos.Handle) chaos.Reversal {
	var s pushDropState
	if err := decodeState(h, &s); err != nil {
		return unknown(err, "")
	}
	if s.Proxy != nil {
		return f.proxying.revert(ctx, h.ID)
	}
	return f.revert(ctx, h, *s.Rule)
}

func (f *pushDrop) Recover(ctx context.Context, h chaos.Handle) chaos.Reversal {
	var s pushDropState
	if err := decodeState(h, &s); err != nil {
		return unknown(err, "")
	}
	if s.Proxy != nil {
		return s.Proxy.recover()
	}
	return s.Rule.recover(ctx, h)
}
