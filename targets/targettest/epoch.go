package targettest

import (
	"context"
	"fmt"

	"github.com/metachaos/metachaos/targets"
)

func epochChecks() []Check {
	versioned := func(more ...targets.Capability) []targets.Capability {
		return append(needs(targets.CapEpochs, targets.CapFetch), more...)
	}
	return []Check{
		{Name: "the current epoch is served under that epoch", Needs: versioned(), Try: tryCurrentEpoch},
		{Name: "a newer epoch than the node's is refused", Needs: versioned(), Try: tryNewerEpoch},
		{Name: "a node that does not own the object refuses it", Needs: versioned(), Try: tryNotOwner},
		{Name: "a stale epoch is refused with the new owner", Needs: versioned(targets.CapMigrate), Try: tryStaleEpoch},
		{Name: "a migration shows its three stages", Needs: versioned(targets.CapMigrate), Try: tryMigration},
		{Name: "a migration to nowhere is an error", Needs: needs(targets.CapMigrate), Try: tryBadMigration},
	}
}

func tryCurrentEpoch(ctx context.Context, t targets.Target) error {
	return withRouter(ctx, t, func(r *router) error {
		for _, verb := range []targets.Verb{targets.VerbRead, targets.VerbWrite} {
			reply, err := r.do(ctx, verb, "item-0", []byte("x"), targets.RolePrimary)
			if err != nil {
				return err
			}
			e, err := r.entry(ctx, "item-0")
			if err != nil {
				return err
			}
			if reply.Epoch != e.Epoch || reply.Shard != e.Owner {
				return fmt.Errorf("%s was served under epoch %d by shard %s; the truth is %+v", verb, reply.Epoch, reply.Shard, e)
			}
		}
		return nil
	})
}

func tryNewerEpoch(ctx context.Context, t targets.Target) error {
	return withRouter(ctx, t, func(r *router) error {
		if _, err := r.do(ctx, targets.VerbRead, "item-0", nil, targets.RolePrimary); err != nil {
			return err
		}
		op, err := r.op(ctx, targets.VerbRead, "item-0", nil, targets.RolePrimary)
		if err != nil {
			return err
		}
		op.Epoch += 7
		return wantRefusal(t.Do(ctx, op), targets.CodeNodeBehind)
	})
}

func tryNotOwner(ctx context.Context, t targets.Target) error {
	return withRouter(ctx, t, func(r *router) error {
		op, err := r.op(ctx, targets.VerbWrite, "item-0", []byte("x"), targets.RolePrimary)
		if err != nil {
			return err
		}
		e, err := r.entry(ctx, "item-0")
		if err != nil {
			return err
		}
		other, err := r.foreign(e)
		if err != nil {
			return err
		}
		if op.Node, err = r.at(other, targets.RolePrimary); err != nil {
			return err
		}
		return eventually(ctx, func() error { // it may first have to refresh
			reply := t.Do(ctx, op)
			if err := wantRefusal(reply, targets.CodeNotOwner); err != nil {
				return err
			}
			if reply.Owner != e.Owner || reply.Epoch != e.Epoch {
				return fmt.Errorf("the refusal offers %q at epoch %d; the truth is %+v", reply.Owner, reply.Epoch, e)
			}
			return nil
		})
	})
}

func tryStaleEpoch(ctx context.Context, t targets.Target) error {
	return withRouter(ctx, t, func(r *router) error {
		stale, err := r.op(ctx, targets.VerbRead, "item-0", nil, targets.RolePrimary)
		if err != nil {
			return err
		}
		if _, err := r.do(ctx, targets.VerbRead, "item-0", nil, targets.RolePrimary); err != nil {
			return err
		}
		e, err := r.entry(ctx, "item-0")
		if err != nil {
			return err
		}
		to, err := r.foreign(e)
		if err != nil {
			return err
		}
		now, err := t.(targets.Migrator).Migrate(ctx, e.Object, to, targets.StageHandedOver)
		if err != nil {
			return err
		}
		for _, verb := range []targets.Verb{targets.VerbRead, targets.VerbWrite} {
			stale.Verb = verb
			reply := t.Do(ctx, stale)
			if err := wantRefusal(reply, targets.CodeStaleEpoch); err != nil {
				return fmt.Errorf("%s at the old owner: %w", verb, err)
			}
			if reply.Owner != to || reply.Epoch != now.Epoch {
				return fmt.Errorf("the refusal offers %q at epoch %d; the truth is %+v", reply.Owner, reply.Epoch, now)
			}
		}
		_, err = r.do(ctx, targets.VerbRead, "item-0", nil, targets.RolePrimary)
		return err
	})
}

func tryMigration(ctx context.Context, t targets.Target) error {
	return withRouter(ctx, t, func(r *router) error {
		migrator := t.(targets.Migrator)
		before, err := r.entry(ctx, "item-0")
		if err != nil {
			return err
		}
		to, err := r.foreign(before)
		if err != nil {
			return err
		}
		for _, moment := range []struct {
			stage      targets.Stage
			owner      string
			epoch      targets.Epoch
			unfiltered int // copies of item-0 that a scan without a filter finds
		}{
			{targets.StageCopied, before.Owner, before.Epoch, 2},
			{targets.StageHandedOver, to, before.Epoch + 1, 2},
			{targets.StageCleaned, to, before.Epoch + 1, 1},
		} {
			for range 2 { // the second call does nothing
				e, err := migrator.Migrate(ctx, before.Object, to, moment.stage)
				if err != nil {
					return err
				}
				if e.Owner != moment.owner || e.Epoch != moment.epoch {
					return fmt.Errorf("stage %s gave %+v; want owner %s at epoch %d", moment.stage, e, moment.owner, moment.epoch)
				}
			}
			counts, err := r.scan(ctx, targets.RolePrimary, targets.ConcernAvailable)
			if err != nil {
				return err
			}
			if n := counts["item-0"]; n != moment.unfiltered {
				return fmt.Errorf("at stage %s nodes hold item-0 %d times; want %d", moment.stage, n, moment.unfiltered)
			}
			if _, err := r.do(ctx, targets.VerbRead, "item-0", nil, targets.RolePrimary); err != nil {
				return fmt.Errorf("at stage %s: %w", moment.stage, err)
			}
		}
		counts, err := r.scan(ctx, targets.RolePrimary, targets.ConcernLocal)
		if err != nil {
			return err
		}
		return wantOnce(counts, r.topology.Documents)
	})
}

func tryBadMigration(ctx context.Context, t targets.Target) error {
	top, err := t.Topology(ctx)
	if err != nil {
		return err
	}
	migrator := t.(targets.Migrator)
	shard := top.Shards()[0]
	for _, bad := range []struct {
		object targets.Object
		to     string
		stage  targets.Stage
	}{
		{targets.Object{Kind: "route", ID: "nowhere"}, shard, targets.StageCleaned},
		{top.Objects[0], "nowhere", targets.StageCleaned},
		{top.Objects[0], shard, "nowhere"},
	} {
		if _, err := migrator.Migrate(ctx, bad.object, bad.to, bad.stage); err == nil {
			return fmt.Errorf("migrating %s to %s, stage %s, is no error", bad.object, bad.to, bad.stage)
		}
	}
	return nil
}
