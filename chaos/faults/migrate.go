package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/metachaos/metachaos/chaos"
	"github.com/metachaos/metachaos/targets"
)

type shardMigrate struct {
	target targets.Target // may be nil
	held   claims[targets.Object]

	mu    sync.Mutex
	begun map[string]map[targets.Object]bool // by injection: moves whose copy began
}

var _ chaos.Fault = (*shardMigrate)(nil)

// ShardMigrate returns the fault that moves objects to another shard and
// leaves the old owner's documents there, as orphans, until it ends.
func ShardMigrate(t targets.Target) chaos.Fault {
	return &shardMigrate{target: t, begun: map[string]map[targets.Object]bool{}}
}

type migrateConfig struct {
	Object  string   `yaml:"object"`
	Objects []string `yaml:"objects"`
	Count   int      `yaml:"count"`
	Share   float64  `yaml:"share"`
	From    string   `yaml:"from"`
	To      string   `yaml:"to"`
}

type migrateState struct {
	Moves []move `json:"moves"`
	// Processes hold the documents, and with them the orphans.
	Processes []targets.Process `json:"processes,omitempty"`
}

func (f *shardMigrate) Describe() chaos.Description {
	return chaos.Description{
		Name: "shard.migrate",
		Summary: "Copies and hands over objects to another shard; the old owner keeps its documents as orphans " +
			"until the step ends, and then deletes them.",
		Needs: []targets.Capability{targets.CapMigrate, targets.CapFetch},
		Fields: []chaos.Field{
			{Name: "object", Type: "kind/id", Summary: "The object to move. One of object, objects, count and share."},
			{Name: "objects", Type: "list of kind/id", Summary: "The objects to move."},
			{Name: "count", Type: "integer", Default: "1", Summary: "How many objects to move, chosen by the seed."},
			{Name: "share", Type: "number", Summary: "The share of the objects to move, above 0 and up to 1, chosen by the seed."},
			{Name: "from", Type: "shard", Default: "on.shard, or any", Summary: "Only objects that this shard owns."},
			{Name: "to", Type: "shard", Default: "the next one", Summary: "The new owner."},
		},
	}
}

func (f *shardMigrate) configure(step chaos.Step) (migrateConfig, error) {
	var c migrateConfig
	if err := decode(step, &c); err != nil {
		return c, err
	}
	ways := 0
	for _, set := range []bool{c.Object != "", c.Objects != nil, c.Count != 0, c.Share != 0} {
		if set {
			ways++
		}
	}
	if ways > 1 {
		return c, errors.New("object, objects, count and share exclude one another: want one of them")
	}
	if c.Share != 0 {
		if err := checkShare(c.Share); err != nil {
			return c, err
		}
	}
	if c.Count < 0 {
		return c, fmt.Errorf("count is %d: want 1 or more", c.Count)
	}
	if c.Object != "" {
		c.Objects = []string{c.Object}
	}
	for _, text := range c.Objects {
		if _, err := targets.ParseObject(text); err != nil {
			return c, err
		}
	}
	if step.On != (targets.Selector{Shard: step.On.Shard}) {
		return c, fmt.Errorf("on is %s: objects belong to shards, so want on: {shard: …} or nothing", describe(step.On))
	}
	if c.From != "" && step.On.Shard != "" && c.From != step.On.Shard {
		return c, fmt.Errorf("from is %q, but on.shard is %q: want one of them", c.From, step.On.Shard)
	}
	c.From = cmp.Or(c.From, step.On.Shard)
	if c.To != "" && c.To == c.From {
		return c, fmt.Errorf("from and to are both %q: want two shards", c.To)
	}
	return c, nil
}

func (f *shardMigrate) Validate(step chaos.Step) error {
	_, err := f.configure(step)
	return err
}

// mover is what the fault asks of its target.
type mover interface {
	targets.Migrator
	targets.Fetcher
}

func (f *shardMigrate) mover() (mover, error) {
	if f.target == nil {
		return nil, errNoTarget
	}
	m, ok := f.target.(mover)
	if !ok {
		return nil, fmt.Errorf("the target %q cannot migrate objects and tell their owners", f.target.Info().Kind)
	}
	return m, nil
}

func (f *shardMigrate) Plan(ctx context.Context, step chaos.Step, scope chaos.Scope) (chaos.Handle, error) {
	c, err := f.configure(step)
	if err != nil {
		return chaos.Handle{}, err
	}
	m, err := f.mover()
	if err != nil {
		return chaos.Handle{}, err
	}
	truth, err := truthOf(ctx, m, scope.Topology.Objects)
	if err != nil {
		return chaos.Handle{}, err
	}
	moves, err := c.choose(scope.Topology, truth, step.Seed)
	if err != nil {
		return chaos.Handle{}, err
	}
	touches := make([]string, len(moves))
	for i, mv := range moves {
		touches[i] = fmt.Sprintf("%s: from %s to %s", mv.Object, mv.From, mv.To)
	}
	return newHandle(step, touches, migrateState{Moves: moves, Processes: scope.Processes})
}

// chaosClient is the name under which faults ask the control plane, so that
// analyzers can tell these pulls from those of the load.
const chaosClient = "chaos"

func truthOf(ctx context.Context, f targets.Fetcher, objects []targets.Object) (map[targets.Object]targets.Entry, error) {
	entries, err := f.Fetch(ctx, targets.Fetch{Objects: objects, Cause: targets.CauseCold, Client: chaosClient})
	if err != nil {
		return nil, fmt.Errorf("ask who owns the objects: %w", err)
	}
	truth := make(map[targets.Object]targets.Entry, len(entries))
	for _, e := range entries {
		truth[e.Object] = e
	}
	return truth, nil
}

func (f *shardMigrate) Inject(ctx context.Context, h chaos.Handle) error {
	var s migrateState
	if err := decodeState(h, &s); err != nil {
		return err
	}
	m, err := f.mover()
	if err != nil {
		return err
	}
	if err := f.held.take(h.ID, s.objects()); err != nil {
		return err
	}
	for _, stage := range []targets.Stage{targets.StageCopied, targets.StageHandedOver} {
		for _, mv := range s.Moves {
			f.markBegun(h.ID, mv.Object)
			if _, err := m.Migrate(ctx, mv.Object, mv.To, stage); err != nil {
				return fmt.Errorf("migrate %s to %s, up to %s: %w", mv.Object, mv.To, stage, err)
			}
		}
	}
	return nil
}

func (f *shardMigrate) Status(ctx context.Context, h chaos.Handle) (chaos.Status, error) {
	var s migrateState
	if err := decodeState(h, &s); err != nil {
		return chaos.Status{}, err
	}
	m, err := f.mover()
	if err != nil {
		return chaos.Status{}, err
	}
	truth, err := truthOf(ctx, m, s.objects())
	if err != nil {
		return chaos.Status{}, err
	}
	over := 0
	for _, mv := range s.Moves {
		if mv.done(truth) {
			over++
		}
	}
	return chaos.Status{Effective: over == len(s.Moves),
		Evidence: fmt.Sprintf("%d of %d objects are handed over", over, len(s.Moves))}, nil
}

// Revert deletes the orphans. An epoch never goes back, so a migration that
// was begun is completed, not undone; one that was not begun is left alone.
func (f *shardMigrate) Revert(ctx context.Context, h chaos.Handle) chaos.Reversal {
	const howTo = "bring the migrations named to their last stage by the target's own means, or end the target"
	var s migrateState
	if err := decodeState(h, &s); err != nil {
		return unknown(err, howTo)
	}
	m, err := f.mover()
	if err != nil {
		return unknown(err, howTo)
	}
	truth, err := truthOf(ctx, m, s.objects())
	if err != nil {
		return unknown(err, howTo)
	}
	cleaned := 0
	for _, mv := range s.Moves {
		if f.held.foreign(h.ID, mv.Object) || !mv.done(truth) && !f.hasBegun(h.ID, mv.Object) {
			continue
		}
		entry, err := m.Migrate(ctx, mv.Object, mv.To, targets.StageCleaned)
		if err == nil && entry.Owner != mv.To {
			err = fmt.Errorf("its owner is %q", entry.Owner)
		}
		if err != nil {
			return chaos.Reversal{Undone: chaos.NotReverted, HowTo: howTo,
				Evidence: fmt.Sprintf("complete the migration of %s to %s: %v", mv.Object, mv.To, err)}
		}
		cleaned++
	}
	f.held.release(h.ID)
	return chaos.Reversal{Undone: chaos.Reverted,
		Evidence: fmt.Sprintf("%d of %d migrations are complete, the others never began", cleaned, len(s.Moves))}
}

// Recover can only look whether the documents are gone with their processes.
func (f *shardMigrate) Recover(_ context.Context, h chaos.Handle) chaos.Reversal {
	var s migrateState
	if err := decodeState(h, &s); err != nil {
		return unknown(err, "end the target")
	}
	var alive []string
	for _, p := range s.Processes {
		if p.Alive() {
			alive = append(alive, fmt.Sprintf("%d (%s)", p.PID, p.Node))
		}
	}
	if len(s.Processes) == 0 || len(alive) > 0 {
		return unknown(fmt.Errorf("orphans may be left: %s", strings.Join(h.Touches, ", ")),
			strings.TrimSpace("end the target's processes "+strings.Join(alive, ", ")))
	}
	return chaos.Reversal{Undone: chaos.Reverted, Evidence: "the processes that held orphans are gone"}
}

func (s migrateState) objects() []targets.Object {
	out := make([]targets.Object, len(s.Moves))
	for i, mv := range s.Moves {
		out[i] = mv.Object
	}
	return out
}

func (f *shardMigrate) markBegun(id string, o targets.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.begun[id] == nil {
		f.begun[id] = map[targets.Object]bool{}
	}
	f.begun[id][o] = true
}

func (f *shardMigrate) hasBegun(id string, o targets.Object) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.begun[id][o]
}
