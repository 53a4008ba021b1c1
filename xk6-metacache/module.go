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
	options options
	once    sync.Once
	fleet   *fleet.Fleet
	err     error
}

var _ script.Module = (*Module)(nil)

// New returns the module. Close it when the run is over.
func New(env Env) *Module { return &Module{env: env} }

// Close ends all fleets.
func (m *Module) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	for _, s := range m.fleets {
		s.once.Do(func() {}) // a fleet that was never used stays unused
		if s.fleet != nil {
			errs = append(errs, s.fleet.Close())
		}
	}
	return errors.Join(errs...)
}

// Fleets returns how many fleets the script's init code has made.
func (m *Module) Fleets() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.fleets)
}

// Start starts all fleets that the first init of the script made, so that
// their caches are warm before the load begins.
func (m *Module) Start(ctx context.Context) error {
	m.mu.Lock()
	fleets := m.fleets
	m.mu.Unlock()
	for i := range fleets {
		if _, err := m.started(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// Exports implements [script.Module].
func (m *Module) Exports(h script.Host) script.Exports {
	made := 0
	meters, err := newMeters(h.Meter())
	if err != nil {
		panic(h.Runtime().NewGoError(err))
	}
	construct := func(call sobek.ConstructorCall) *sobek.Object {
		rt := h.Runtime()
		if !h.InInit() {
			panic(rt.NewTypeError("new Fleet() works in init code only: make the fleet at the top of the script"))
		}
		opts, err := parseOptions(rt, call.Argument(0))
		if err != nil {
			panic(rt.NewTypeError("new Fleet(): " + err.Error()))
		}
		index := made
		made++
		if err := m.declare(index, opts); err != nil {
			panic(rt.NewTypeError("new Fleet(): " + err.Error()))
		}
		return (&handle{host: h, module: m, index: index, meters: meters}).object()
	}
	exports := h.Runtime().NewObject()
	// Set on a plain new object cannot fail.
	_ = exports.Set("Fleet", construct)
	return script.Exports{Default: exports, Named: map[string]any{"Fleet": exports.Get("Fleet")}}
}

// declare notes the options of the nth fleet. Every VU must make the same.
func (m *Module) declare(index int, opts options) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if index < len(m.fleets) {
		if m.fleets[index].options != opts {
			return fmt.Errorf("VUs make fleet %d with different options; the options of a fleet must not depend on the VU", index+1)
		}
		return nil
	}
	m.fleets = append(m.fleets, &sharedFleet{options: opts})
	return nil
}

// started returns the nth fleet and starts it on first use.
func (m *Module) started(ctx context.Context, index int) (*fleet.Fleet, error) {
	m.mu.Lock()
	s := m.fleets[index]
	m.mu.Unlock()
	s.once.Do(func() {
		target, err := m.env.Target(ctx)
		if err != nil {
			s.err = err
			return
		}
		config := s.options.config()
		config.Seed = m.env.Seed + uint64(index)
		config.Name = "f" + strconv.Itoa(index+1)
		s.fleet, s.err = fleet.New(ctx, target, m.env.Base, m.env.Events, config)
	})
	if s.fleet == nil && s.err == nil {
		return nil, errors.New("the run is over")
	}
	return s.fleet, s.err
}
