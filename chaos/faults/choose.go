package faults

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/metachaos/metachaos/targets"
)

// move is one object's way, with the truth before it.
type move struct {
	Object targets.Object `json:"object"`
	From   string         `json:"from"`
	To     string         `json:"to"`
	Epoch  targets.Epoch  `json:"epoch"` // before
}

// done reports whether the object was handed over.
func (mv move) done(truth map[targets.Object]targets.Entry) bool {
	now := truth[mv.Object]
	return now.Owner == mv.To && now.Epoch > mv.Epoch
}

// choose works out the moves that the configuration means. It is pure: the
// same topology, truth and seed give the same moves.
func (c migrateConfig) choose(t targets.Topology, truth map[targets.Object]targets.Entry, seed uint64) ([]move, error) {
	shards := t.Shards()
	for key, name := range map[string]string{"from": c.From, "to": c.To} {
		if name != "" && !slices.Contains(shards, name) {
			return nil, fmt.Errorf("%s is %q: there is no such shard; there are %s", key, name, strings.Join(shards, ", "))
		}
	}
	if len(shards) < 2 {
		return nil, fmt.Errorf("a migration needs two shards, and the target has %d", len(shards))
	}
	named := make([]targets.Object, 0, len(c.Objects))
	for _, text := range c.Objects {
		object, err := targets.ParseObject(text)
		if err != nil {
			return nil, err
		}
		if _, ok := truth[object]; !ok {
			return nil, fmt.Errorf("object %s does not exist, or is none that keys map to", object)
		}
		named = append(named, object)
	}
	var moves []move
	for _, object := range t.Objects {
		entry, ok := truth[object]
		to := c.To
		if to == "" {
			to = after(shards, entry.Owner)
		}
		movable := ok && slices.Contains(shards, entry.Owner) && entry.Owner != to && (c.From == "" || c.From == entry.Owner)
		if movable && (len(named) == 0 || slices.Contains(named, object)) {
			moves = append(moves, move{Object: object, From: entry.Owner, To: to, Epoch: entry.Epoch})
		}
	}
	if len(moves) == 0 || len(named) > 0 && len(moves) != len(named) {
		return nil, fmt.Errorf("%d of the %d objects asked for can move from %s to %s: the others are there already, or not at the start",
			len(moves), max(1, len(named)), orAny(c.From), orAny(c.To))
	}
	if len(named) > 0 {
		return moves, nil
	}
	n := max(1, c.Count)
	if c.Share > 0 {
		n = int(math.Ceil(c.Share * float64(len(moves))))
	}
	if n > len(moves) {
		return nil, fmt.Errorf("count is %d, and only %d objects can move from %s to %s", n, len(moves), orAny(c.From), orAny(c.To))
	}
	dice := rand.New(rand.NewPCG(seed, 0))
	dice.Shuffle(len(moves), func(i, k int) { moves[i], moves[k] = moves[k], moves[i] })
	return moves[:n], nil
}

// after returns the shard that follows name in the ring of shards.
func after(shards []string, name string) string {
	i := slices.Index(shards, name) // -1 gives the first
	return shards[(i+1)%len(shards)]
}

func orAny(shard string) string {
	if shard == "" {
		return "any shard"
	}
	return shard
}
