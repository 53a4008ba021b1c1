package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/xk6-metacache/client"
)

// Fleet is a set of cache clients. It is safe for concurrent use; operations
// of one client that run at the same time share its cache.
type Fleet struct {
	config  Config
	target  targets.Target
	fetcher targets.Fetcher
	placer  targets.Placer // nil if a target that keeps the map does not tell
	base    targets.Base
	sink    Sink

	topology  targets.Topology
	shards    []string
	roster    roster
	members   []*member
	next      atomic.Uint64
	flights   *flights
	refresher *refresher

	cancel context.CancelFunc
	loops  sync.WaitGroup
	closed sync.Once
}

// member is one logical client.
type member struct {
	name    string
	session *session   // set if the target keeps the map
	mu      sync.Mutex // guards the fields below
	cache   *client.Cache
	rng     *rand.Rand
}

// New starts a fleet: it subscribes to pushes and warms the caches as the
// configuration says. Close ends it. ctx bounds the start only. A nil sink is
// told nothing.
func New(ctx context.Context, target targets.Target, base targets.Base, sink Sink, config Config) (*Fleet, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("configure fleet: %w", err)
	}
	if sink == nil {
		sink = discard{}
	}
	topology, err := target.Topology(ctx)
	if err != nil {
		return nil, fmt.Errorf("start fleet: %w", err)
	}
	loops, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &Fleet{config: config, target: target, base: base, sink: sink, cancel: cancel,
		topology: topology, shards: topology.Shards(), roster: newRoster(topology, config.Preference)}
	for i := range config.Clients {
		rng := rand.New(rand.NewPCG(config.Seed, uint64(i)))
		f.members = append(f.members, &member{name: config.Name + "-" + strconv.Itoa(i), rng: rng, cache: client.New(config.Policy, rng)})
	}
	if err := f.start(ctx, loops); err != nil {
		return nil, errors.Join(fmt.Errorf("start fleet: %w", err), f.Close())
	}
	return f, nil
}

// start does what the kind of target asks for. What it begins lives until
// loops ends.
func (f *Fleet) start(ctx, loops context.Context) error {
	f.placer, _ = f.target.(targets.Placer)
	if target, ok := f.target.(targets.SelfRouting); ok {
		return f.openSessions(ctx, target)
	}
	var fetches bool
	f.fetcher, fetches = f.target.(targets.Fetcher)
	if !fetches || f.placer == nil {
		return fmt.Errorf("target %q neither routes by itself nor hands out metadata", f.target.Info().Kind)
	}
	return f.startCaches(ctx, loops)
}

func (f *Fleet) startCaches(ctx, loops context.Context) error {
	f.flights = newFlights()
	f.refresher = newRefresher(f)
	f.loops.Go(func() { f.flights.run(loops, f.fetchInTime) })
	if f.config.Policy.Push {
		watcher, ok := f.target.(targets.Watcher)
		if !ok {
			return fmt.Errorf("target %q sends no pushes; switch push off", f.target.Info().Kind)
		}
		f.subscribe(ctx, loops, watcher)
	}
	if f.config.Warm {
		if err := f.warm(ctx); err != nil {
			return err
		}
	}
	if f.config.Refresh == RefreshBackground {
		f.loops.Go(func() { f.refresher.run(loops) })
	}
	if f.config.Policy.PeriodicPull > 0 {
		f.loops.Go(func() { f.pullPeriodically(loops) })
	}
	return nil
}

// Close ends the fleet's loops and sessions. Operations under way end with
// their own deadlines. It may be called twice.
func (f *Fleet) Close() error {
	f.cancel()
	f.loops.Wait()
	var errs []error
	f.closed.Do(func() {
		for _, m := range f.members {
			if m.session != nil {
				errs = append(errs, m.session.close())
			}
		}
	})
	return errors.Join(errs...)
}

// Next returns the index of a client, each in turn.
func (f *Fleet) Next() int { return int((f.next.Add(1) - 1) % uint64(len(f.members))) }

// warm gives every client every entry, as if the fleet had been at work for
// long.
func (f *Fleet) warm(ctx context.Context) error {
	entries, err := f.fetchInTime(ctx, targets.Fetch{Cause: targets.CauseCold, Client: f.config.Name})
	if err != nil {
		return fmt.Errorf("warm caches: %w", err)
	}
	now := f.base.Now()
	for i, m := range f.members {
		m.mu.Lock()
		for _, e := range entries {
			m.cache.Warmed(now, e, (float64(i)+0.5)/float64(len(f.members)))
		}
		m.mu.Unlock()
		f.refresher.watch(m, entries)
	}
	return nil
}
