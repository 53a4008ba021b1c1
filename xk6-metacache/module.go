package metacache

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/grafana/sobek"

	"github.com/metachaos/metachaos/load/script"
	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/xk6-metacache/fleet"
)

// ImportPath is the name that scripts import the module by.
const ImportPath = "k6/x/metacache"

// Env is what the module needs from whoever runs the script.
type Env struct {
	// Target returns the running target. It is called when a fleet is made,
	// and may start the target then.
	Target func(ctx context.Context) (targets.Target, error)
	Base   targets.Base
	Events fleet.Sink
	Seed   uint64
}

// Module is k6/x/metacache. All VUs of a run share its fleets: the nth Fleet
// that a VU's init code makes is the nth fleet of the run.
type Module struct {
	env    Env
	mu     sync.Mutex
	fleets []*sharedFleet
}

// sharedFleet starts on first use, so that a script which is only inspected
// starts nothing.
type sharedFleet struct {
	index   int
	options options

	turn  chan struct{} // held by whoever looks at or changes the fields below
	fleet *fleet.Fleet
	err   error // why it cannot start, or no longer
}

var _ script.Module = (*Module)(nil)

// errOver is what becomes of a fleet that is used after the run.
var errOver = errors.New("the run is over: a fleet can be used in setup, iterations and teardown")

// New returns the module. Close it when the run is over.
func New(env Env) *Module { return &Module{env: env} }

// Close ends all fleets. One that was never used stays unused.
func (m *Module) Close() error {
	var errs []error
	for _, s := range m.declared() {
		s.turn <- struct{}{}
		if s.fleet != nil {
			errs = append(errs, s.fleet.Close())
		}
		s.fleet, s.err = nil, errOver
		<-s.turn
	}
	return errors.Join(errs...)
}

// Fleets returns how many fleets the script's init code has made.
func (m *Module) Fleets() int { return len(m.declared()) }

func (m *Module) declared() []*sharedFleet {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fleets
}

// Start starts all fleets that the first init of the script made, so that
// their caches are warm before the load begins.
func (m *Module) Start(ctx context.Context) error {
	for _, s := range m.declared() {
		if _, err := m.started(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// Exports implements [script.Module].
func (m *Module) Exports(h script.Host) script.Exports {
	rt := h.Runtime()
	meters, err := newMeters(h)
	if err != nil {
		panic(rt.NewGoError(err))
	}
	made := 0
	var class *sobek.Object
	class = rt.ToValue(func(call sobek.ConstructorCall) *sobek.Object {
		if !rt.InstanceOf(call.This, class) { // metacache.Fleet() would become the module itself
			panic(rt.NewTypeError("Fleet is a class: want new Fleet(options)"))
		}
		if !h.InInit() {
			panic(rt.NewTypeError("new Fleet() works in init code only: make the fleet at the top of the script"))
		}
		opts, err := parseOptions(call.Argument(0))
		if err != nil {
			panic(rt.NewTypeError("new Fleet(): " + err.Error()))
		}
		shared, err := m.declare(made, opts)
		if err != nil {
			panic(rt.NewTypeError("new Fleet(): " + err.Error()))
		}
		made++
		return (&handle{host: h, module: m, shared: shared, meters: meters}).install(call.This)
	}).ToObject(rt)
	exports := rt.NewObject()
	// On plain new objects these cannot fail.
	_ = class.DefineDataProperty("name", rt.ToValue("Fleet"), sobek.FLAG_FALSE, sobek.FLAG_FALSE, sobek.FLAG_TRUE)
	_ = exports.Set("Fleet", class)
	return script.Exports{Default: exports, Named: map[string]any{"Fleet": class}}
}

// declare notes the options of the nth fleet. Every VU must make the same.
func (m *Module) declare(index int, opts options) (*sharedFleet, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if index < len(m.fleets) {
		if m.fleets[index].options != opts {
			return nil, fmt.Errorf("VUs make fleet %d with different options; the options of a fleet must not depend on the VU", index+1)
		}
		return m.fleets[index], nil
	}
	s := &sharedFleet{index: index, options: opts, turn: make(chan struct{}, 1)}
	m.fleets = append(m.fleets, s)
	return s, nil
}

// started returns a fleet and starts it on first use. That a start was cut
// short by the end of ctx is not kept: it says nothing of the next.
func (m *Module) started(ctx context.Context, s *sharedFleet) (*fleet.Fleet, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the fleet to start: %w", context.Cause(ctx))
	}
	if s.fleet != nil || s.err != nil {
		return s.fleet, s.err
	}
	f, err := m.start(ctx, s)
	if err != nil && ctx.Err() != nil {
		return nil, err
	}
	s.fleet, s.err = f, err
	return f, err
}

func (m *Module) start(ctx context.Context, s *sharedFleet) (*fleet.Fleet, error) {
	target, err := m.env.Target(ctx)
	if err != nil {
		return nil, err
	}
	config := s.options.config()
	config.Seed = m.env.Seed + uint64(s.index)
	config.Name = "f" + strconv.Itoa(s.index+1)
	return fleet.New(ctx, target, m.env.Base, m.env.Events, config)
}
