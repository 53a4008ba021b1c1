package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/xk6-metacache/client"
)

// Fleet is a set of cache clients. It is safe for concurrent use; operations
// of one client that run at the same time share its cache.
type Fleet struct {
	config  Config
	target  targets.Target
	fetcher targets.Fetcher
	placer  targets.Placer
	base    targets.Base
	sink    Sink

	topology  targets.Topology
	shards    []string
	members   []*member
	next      atomic.Uint64
	flights   singleflight.Group
	refresher *refresher

	cancel context.CancelFunc
	loops  sync.WaitGroup
}

// member is one logical client.
type member struct {
	name    string
	session targets.Session // set if the target keeps the map
	mu      sync.Mutex      // guards the fields below
	cache   *client.Cache
	rng     *rand.Rand
}

// New starts a fleet: it subscribes to pushes and warms the caches as the
// configuration says. Close ends it. ctx bounds the start only.
func New(ctx context.Context, target targets.Target, base targets.Base, sink Sink, config Config) (*Fleet, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("configure fleet: %w", err)
	}
	topology, err := target.Topology(ctx)
	if err != nil {
		return nil, fmt.Errorf("start fleet: %w", err)
	}
	f := &Fleet{config: config, target: target, base: base, sink: sink, topology: topology, shards: topology.Shards()}
	for i := range config.Clients {
		rng := rand.New(rand.NewPCG(config.Seed, uint64(i)))
		f.members = append(f.members, &member{name: config.Name + "-" + strconv.Itoa(i), rng: rng, cache: client.New(config.Policy, rng)})
	}
	if owner, ok := target.(targets.SelfRouting); ok {
		return f, f.openSessions(ctx, owner)
	}
	var hasFetch, hasPlace bool
	f.fetcher, hasFetch = target.(targets.Fetcher)
	f.placer, hasPlace = target.(targets.Placer)
	if !hasFetch || !hasPlace {
		return nil, fmt.Errorf("start fleet: target %q neither routes by itself nor hands out metadata", target.Info().Kind)
	}
	return f, f.start(ctx)
}

func (f *Fleet) openSessions(ctx context.Context, target targets.SelfRouting) error {
	for _, m := range f.members {
		s, err := target.Open(ctx, m.name)
		if err != nil {
			return errors.Join(fmt.Errorf("open session of client %s: %w", m.name, err), f.Close())
		}
		m.session = s
	}
	return nil
}

// start begins the loops that outlive ctx.
func (f *Fleet) start(ctx context.Context) error {
	loops, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f.cancel = cancel
	f.refresher = newRefresher(f)
	if f.config.Policy.Push {
		watcher, ok := f.target.(targets.Watcher)
		if !ok {
			cancel()
			return fmt.Errorf("start fleet: target %q sends no pushes; switch push off", f.target.Info().Kind)
		}
		f.subscribe(loops, watcher)
	}
	if f.config.Warm {
		if err := f.warm(ctx); err != nil {
			return errors.Join(err, f.Close())
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
// their own deadlines.
func (f *Fleet) Close() error {
	if f.cancel != nil {
		f.cancel()
	}
	f.loops.Wait()
	var errs []error
	for _, m := range f.members {
		if m.session != nil {
			errs = append(errs, m.session.Close())
		}
	}
	return errors.Join(errs...)
}

// Size returns the number of clients.
func (f *Fleet) Size() int { return len(f.members) }

// Next returns the index of a client, each in turn.
func (f *Fleet) Next() int { return int((f.next.Add(1) - 1) % uint64(len(f.members))) }

// warm gives every client every entry, with expiries spread evenly over one
// TTL: a client that started earlier holds an entry that is older.
func (f *Fleet) warm(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, f.config.PullTimeout)
	defer cancel()
	entries, err := f.fetcher.Fetch(ctx, targets.Fetch{Cause: targets.CauseCold, Client: f.config.Name})
	if err != nil {
		return fmt.Errorf("warm caches: %w", err)
	}
	now := f.base.Now()
	for i, m := range f.members {
		age := time.Duration(float64(f.config.Policy.TTL) * float64(i) / float64(len(f.members)))
		m.mu.Lock()
		for _, e := range entries {
			m.cache.Pulled(now-age, e)
		}
		m.mu.Unlock()
		f.refresher.watch(m, entries)
	}
	return nil
}

func (f *Fleet) pullPeriodically(ctx context.Context) {
	tick := time.NewTicker(f.config.Policy.PeriodicPull)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			for _, m := range f.members {
				// A failed pull is an event of its own; the next tick repeats it.
				_ = f.pullAll(ctx, m, targets.CausePeriodic)
			}
		}
	}
}
