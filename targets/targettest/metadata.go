package targettest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/metachaos/metachaos/targets"
)

func metadataChecks() []Check {
	return []Check{
		{Name: "a fetch hands out what exists", Needs: needs(targets.CapFetch), Try: tryFetch},
		{Name: "pushes are numbered without holes", Needs: needs(targets.CapWatch), Try: tryWatch},
		{Name: "a change is pushed", Needs: needs(targets.CapWatch, targets.CapMigrate, targets.CapFetch), Try: tryPush},
		{Name: "the truth begins with every object", Needs: needs(targets.CapTruth), Try: tryTruth},
		{Name: "the truth ends with what was granted last", Needs: needs(targets.CapTruth, targets.CapFetch), Try: tryTruthEnd},
	}
}

func tryFetch(ctx context.Context, t targets.Target) error {
	top, err := t.Topology(ctx)
	if err != nil {
		return err
	}
	f := t.(targets.Fetcher)
	all, err := f.Fetch(ctx, targets.Fetch{Cause: targets.CausePeriodic, Client: "c"})
	if err != nil {
		return err
	}
	if len(all) != len(top.Objects) {
		return fmt.Errorf("fetching everything gave %d entries of %d objects", len(all), len(top.Objects))
	}
	for _, e := range all {
		if !slices.Contains(top.Objects, e.Object) || e.Epoch == 0 || e.Owner == "" {
			return fmt.Errorf("entry %+v is of no known object or lacks epoch or owner", e)
		}
		if e.Object.Kind == targets.KindRoute && !slices.Contains(top.Shards(), e.Owner) {
			return fmt.Errorf("entry %+v names an owner that is no shard", e)
		}
	}
	some, err := f.Fetch(ctx, targets.Fetch{Objects: []targets.Object{{Kind: targets.KindRoute, ID: "nowhere"}, top.Objects[0]}, Client: "c"})
	if err != nil {
		return err
	}
	if len(some) != 1 || some[0].Object != top.Objects[0] {
		return fmt.Errorf("fetching one object that exists and one that does not gave %v", some)
	}
	return nil
}

// watching runs a subscription while use runs, hands it the pushes, and wants
// the subscription to end without an error.
func watching(ctx context.Context, t targets.Target, use func(ctx context.Context, pushes <-chan targets.Push) error) error {
	pushes := make(chan targets.Push, 1024)
	watch, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- t.(targets.Watcher).Watch(watch, "watcher", func(p targets.Push) {
			select {
			case pushes <- p:
			default: // use has seen enough
			}
		})
	}()
	err := use(ctx, pushes)
	stop()
	if watched := <-ended; watched != nil {
		return errors.Join(err, fmt.Errorf("watch ended with %w; want nil when its context ends", watched))
	}
	return err
}

func next(ctx context.Context, pushes <-chan targets.Push) (targets.Push, error) {
	select {
	case p := <-pushes:
		return p, nil
	case <-ctx.Done():
		return targets.Push{}, fmt.Errorf("no push came: %w", ctx.Err())
	}
}

func tryWatch(ctx context.Context, t targets.Target) error {
	return watching(ctx, t, func(ctx context.Context, pushes <-chan targets.Push) error {
		for want := uint64(1); want <= 3; want++ {
			p, err := next(ctx, pushes)
			if err != nil {
				return err
			}
			if p.Seq != want {
				return fmt.Errorf("message number %d has sequence number %d", want, p.Seq)
			}
		}
		return nil
	})
}

func tryPush(ctx context.Context, t targets.Target) error {
	return withRouter(ctx, t, func(r *router) error {
		before, err := r.entry(ctx, "item-0")
		if err != nil {
			return err
		}
		to, err := r.foreign(before)
		if err != nil {
			return err
		}
		return watching(ctx, t, func(ctx context.Context, pushes <-chan targets.Push) error {
			first, err := next(ctx, pushes) // the subscription stands
			if err != nil {
				return err
			}
			now, err := t.(targets.Migrator).Migrate(ctx, before.Object, to, targets.StageCleaned)
			if err != nil {
				return err
			}
			for seq := first.Seq + 1; ; seq++ {
				p, err := next(ctx, pushes)
				if err != nil {
					return fmt.Errorf("waiting for the news of %+v: %w", now, err)
				}
				if p.Seq != seq {
					return fmt.Errorf("sequence number %d follows %d", p.Seq, seq-1)
				}
				if slices.Contains(p.Entries, now) {
					return nil
				}
			}
		})
	})
}

// truths follows the truth until enough says so, or ctx ends.
func truths(ctx context.Context, t targets.Target, enough func([]targets.Truth) bool) ([]targets.Truth, error) {
	follow, stop := context.WithCancel(ctx)
	defer stop()
	var all []targets.Truth
	err := t.(targets.TruthLog).FollowTruth(follow, func(one targets.Truth) {
		all = append(all, one)
		if enough(all) {
			stop()
		}
	})
	if err != nil {
		return all, fmt.Errorf("follow truth: %w", err)
	}
	if !slices.IsSortedFunc(all, func(a, b targets.Truth) int { return int(a.At - b.At) }) {
		return all, errors.New("the truth is not in the order of its times")
	}
	return all, nil
}

func tryTruth(ctx context.Context, t targets.Target) error {
	top, err := t.Topology(ctx)
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	committed := map[targets.Object]bool{}
	_, err = truths(waiting, t, func(all []targets.Truth) bool {
		if last := all[len(all)-1]; last.Kind == targets.TruthCommit && last.Epoch > 0 && last.Owner != "" {
			committed[last.Object] = true
		}
		return len(committed) == len(top.Objects)
	})
	if err != nil {
		return err
	}
	for _, o := range top.Objects {
		if !committed[o] {
			return fmt.Errorf("the truth does not say who owns %s", o)
		}
	}
	return nil
}

// tryTruthEnd ends the following right after a fetch: the grant was recorded
// by then and must be delivered.
func tryTruthEnd(ctx context.Context, t targets.Target) error {
	follow, stop := context.WithCancel(ctx)
	defer stop()
	granted, following := false, make(chan error, 1)
	began := make(chan struct{}, 1)
	go func() {
		following <- t.(targets.TruthLog).FollowTruth(follow, func(one targets.Truth) {
			granted = granted || one.Kind == targets.TruthGrant && one.To == "the-last" && one.Cause == targets.CauseGap
			select {
			case began <- struct{}{}:
			default:
			}
		})
	}()
	select {
	case <-began:
	case <-ctx.Done():
		return fmt.Errorf("no truth came: %w", ctx.Err())
	}
	_, err := t.(targets.Fetcher).Fetch(ctx, targets.Fetch{Cause: targets.CauseGap, Client: "the-last"})
	if err != nil {
		return err
	}
	stop()
	if err := <-following; err != nil {
		return fmt.Errorf("follow truth: %w", err)
	}
	if !granted {
		return errors.New("a grant that was recorded before the following ended was not delivered")
	}
	return nil
}
