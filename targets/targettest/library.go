package targettest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"

	"github.com/metachaos/metachaos/targets"
)

const (
	libraryShards    = 3
	librarySlots     = 12
	libraryDocuments = 60
	maxRedirects     = 3
)

// Library is a cluster in memory as seen through a client library that keeps
// the map: keys hash to slots, a node that does not own a slot answers MOVED,
// and each session follows at most three of these and corrects its own map.
// It shows that the interfaces of targets fit such a system, and serves as a
// fake. It is safe for concurrent use.
type Library struct {
	mu     sync.Mutex
	closed bool
	owners []string                    // of the slots
	epochs []targets.Epoch             // of the slots
	moves  map[int]move                // migrations under way, by slot
	held   map[string]map[int]document // documents by shard and slot
	pinned map[string]map[int]string   // what a shard claims of a slot it does not own
	shared *librarySession             // of Do
}

type document = map[string]targets.Document

type move struct {
	from, to string
	reached  targets.Stage
}

var (
	_ targets.SelfRouting = (*Library)(nil)
	_ targets.Migrator    = (*Library)(nil)
	_ targets.Placer      = (*Library)(nil)
)

// NewLibrary returns a running Library with its documents loaded.
func NewLibrary() *Library {
	l := &Library{moves: map[int]move{}, held: map[string]map[int]document{}, pinned: map[string]map[int]string{}}
	for i := range libraryShards {
		l.held[shardName(i)] = map[int]document{}
		l.pinned[shardName(i)] = map[int]string{}
	}
	for slot := range librarySlots {
		l.owners = append(l.owners, shardName(slot%libraryShards))
		l.epochs = append(l.epochs, 1)
	}
	for i := range libraryDocuments {
		key := fmt.Sprintf("item-%d", i)
		l.put(l.owners[slotOf(key)], slotOf(key), targets.Document{ID: key, Value: []byte(key), Version: 1})
	}
	l.shared = &librarySession{library: l, slots: slices.Clone(l.owners)}
	return l
}

func shardName(i int) string { return fmt.Sprintf("s%d", i+1) }

func slotObject(slot int) targets.Object {
	return targets.Object{Kind: targets.KindRoute, ID: fmt.Sprintf("slot-%02d", slot)}
}

// slotNamed returns the slot of an object, or -1.
func slotNamed(o targets.Object) int {
	for slot := range librarySlots {
		if slotObject(slot) == o {
			return slot
		}
	}
	return -1
}

func slotOf(key string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key)) // a hash takes everything
	return int(h.Sum32() % librarySlots)
}

func (l *Library) put(shard string, slot int, d targets.Document) {
	if l.held[shard][slot] == nil {
		l.held[shard][slot] = document{}
	}
	l.held[shard][slot][d.ID] = d
}

// Info says what the target is and can do.
func (l *Library) Info() targets.Info {
	return targets.Info{Kind: "library", Version: "1", Capabilities: needs(targets.CapSelfRouting, targets.CapMigrate)}
}

// Topology returns the shards, each of one node.
func (l *Library) Topology(context.Context) (targets.Topology, error) {
	t := targets.Topology{Documents: libraryDocuments}
	for i := range libraryShards {
		t.Nodes = append(t.Nodes, targets.Node{ID: targets.NodeID(shardName(i)), Shard: shardName(i), Role: targets.RolePrimary, Index: 1})
	}
	for slot := range librarySlots {
		t.Objects = append(t.Objects, slotObject(slot))
	}
	return t, nil
}

// Place returns the slot of a key.
func (l *Library) Place(key string) targets.Object { return slotObject(slotOf(key)) }

// Do performs an operation through one session that all callers share.
func (l *Library) Do(ctx context.Context, op targets.Op) targets.Reply { return l.shared.Do(ctx, op) }

// Open starts a session with a copy of the map of now.
func (l *Library) Open(context.Context, string) (targets.Session, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errors.New("open session: the target is closed")
	}
	return &librarySession{library: l, slots: slices.Clone(l.owners)}, nil
}

// Pin makes a shard claim that another one owns the slot of key, as a split
// view of the cluster does. An empty claim takes it back.
func (l *Library) Pin(shard, key, claim string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if claim == "" {
		delete(l.pinned[shard], slotOf(key))
		return
	}
	l.pinned[shard][slotOf(key)] = claim
}

// Migrate moves a slot.
func (l *Library) Migrate(_ context.Context, o targets.Object, to string, stage targets.Stage) (targets.Entry, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	order := []targets.Stage{targets.StageCopied, targets.StageHandedOver, targets.StageCleaned}
	slot := slotNamed(o)
	if slot < 0 || l.held[to] == nil || !slices.Contains(order, stage) {
		return targets.Entry{}, fmt.Errorf("migrate %s to %q, stage %q: there is no such slot, shard or stage", o, to, stage)
	}
	m, moving := l.moves[slot]
	if !moving && l.owners[slot] != to {
		m = move{from: l.owners[slot], to: to}
	} else if moving && m.to != to {
		return targets.Entry{}, fmt.Errorf("migrate %s to %s: it is on its way to %s", o, to, m.to)
	}
	for rank, next := range order {
		if m.to != "" && rank > slices.Index(order, m.reached) && rank <= slices.Index(order, stage) {
			l.advance(slot, &m, next)
		}
	}
	return targets.Entry{Object: o, Epoch: l.epochs[slot], Owner: l.owners[slot]}, nil
}

func (l *Library) advance(slot int, m *move, to targets.Stage) {
	m.reached = to
	l.moves[slot] = *m
	switch to {
	case targets.StageCopied:
		for _, d := range l.held[m.from][slot] {
			l.put(m.to, slot, d)
		}
	case targets.StageHandedOver:
		l.owners[slot] = m.to
		l.epochs[slot]++
	case targets.StageCleaned:
		delete(l.held[m.from], slot)
		delete(l.moves, slot)
	}
}

// Close ends the target. It may be called twice.
func (l *Library) Close(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return nil
}

// librarySession is one logical client.
type librarySession struct {
	library *Library
	mu      sync.Mutex
	slots   []string // the client's own map
}

var _ targets.Session = (*librarySession)(nil)

// Do performs an operation wherever the session's map and its corrections
// lead.
func (s *librarySession) Do(ctx context.Context, op targets.Op) targets.Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return targets.Reply{Outcome: targets.Unknown, Code: targets.CodeTimeout, Detail: err.Error()}
	}
	if op.Verb == targets.VerbScan {
		return s.library.scan(op.Concern)
	}
	slot := slotOf(op.Key)
	for hops := 1; ; hops++ {
		reply, moved := s.library.ask(s.slots[slot], slot, op)
		reply.Hops = hops
		if moved == "" {
			return reply
		}
		if hops > maxRedirects {
			reply.Outcome, reply.Code, reply.Owner = targets.Refused, targets.CodeRedirectLimit, moved
			return reply
		}
		s.slots[slot] = moved
	}
}

// Close ends the session, which holds nothing.
func (s *librarySession) Close() error { return nil }

// ask is what a node does with a request; moved names the shard to ask
// instead.
func (l *Library) ask(shard string, slot int, op targets.Op) (r targets.Reply, moved string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r = targets.Reply{Outcome: targets.Done, Node: targets.NodeID(shard), Shard: shard}
	switch {
	case l.closed:
		r.Outcome, r.Code = targets.Refused, targets.CodeUnavailable
		return r, ""
	case l.pinned[shard][slot] != "":
		return r, l.pinned[shard][slot]
	case l.owners[slot] != shard:
		return r, l.owners[slot]
	}
	d, ok := l.held[shard][slot][op.Key]
	if op.Verb == targets.VerbWrite {
		if l.moves[slot].reached == targets.StageCopied {
			r.Outcome, r.Code = targets.Refused, targets.CodeMigrating
			return r, ""
		}
		d, ok = targets.Document{ID: op.Key, Value: bytes.Clone(op.Value), Version: d.Version + 1}, true
		l.put(shard, slot, d)
	}
	if ok {
		r.Documents = []targets.Document{d}
	}
	return r, ""
}

// scan asks every shard; each leaves out the slots that it does not own,
// unless the caller takes what is available.
func (l *Library) scan(c targets.Concern) targets.Reply {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := targets.Reply{Outcome: targets.Done, Hops: len(l.held)}
	if l.closed {
		return targets.Reply{Outcome: targets.Refused, Code: targets.CodeUnavailable}
	}
	for shard, slots := range l.held {
		for slot, documents := range slots {
			if l.owners[slot] != shard && c != targets.ConcernAvailable {
				continue
			}
			for _, d := range documents {
				r.Documents = append(r.Documents, d)
			}
		}
	}
	return r
}
