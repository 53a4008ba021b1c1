package targettest

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"github.com/metachaos/metachaos/targets"
)

func operationChecks() []Check {
	return []Check{
		{Name: "loaded documents are there", Try: tryLoaded},
		{Name: "a write is read back and its version grows", Try: tryWrite},
		{Name: "writes at once get versions of their own", Try: tryConcurrentWrites},
		{Name: "a scatter read has each document once", Try: tryScatter},
		{Name: "an operation for nobody is refused", Lacks: needs(targets.CapSelfRouting), Try: tryNobody},
		{Name: "a secondary takes no write", Needs: needs(targets.CapReplicas, targets.CapFetch), Try: trySecondaryWrite},
		{Name: "a secondary serves what was written", Needs: needs(targets.CapReplicas, targets.CapFetch), Try: trySecondaryRead},
	}
}

func withRouter(ctx context.Context, t targets.Target, try func(r *router) error) error {
	r, err := newRouter(ctx, t)
	if err != nil {
		return err
	}
	if err := try(r); err != nil {
		return err
	}
	return r.close()
}

func tryLoaded(ctx context.Context, t targets.Target) error {
	return withRouter(ctx, t, func(r *router) error {
		for i := range min(r.topology.Documents, 20) {
			key := fmt.Sprintf("item-%d", i)
			reply, err := r.do(ctx, targets.VerbRead, key, nil, targets.RolePrimary)
			if err != nil {
				return err
			}
			if len(reply.Documents) != 1 || reply.Documents[0].ID != key || reply.Documents[0].Version == 0 {
				return fmt.Errorf("reading %s gave %v; want the document with a version", key, reply.Documents)
			}
			if reply.Hops < 1 {
				return fmt.Errorf("reading %s took %d hops; want at least 1", key, reply.Hops)
			}
		}
		return nil
	})
}

func tryWrite(ctx context.Context, t targets.Target) error {
	return withRouter(ctx, t, func(r *router) error {
		var last uint64
		for _, key := range []string{"item-0", "no-such-item"} {
			last = 0
			for i := range 3 {
				value := fmt.Appendf(nil, "value %d", i)
				if _, err := r.do(ctx, targets.VerbWrite, key, value, targets.RolePrimary); err != nil {
					return err
				}
				reply, err := r.do(ctx, targets.VerbRead, key, nil, targets.RolePrimary)
				if err != nil {
					return err
				}
				if len(reply.Documents) != 1 || !bytes.Equal(reply.Documents[0].Value, value) {
					return fmt.Errorf("read %v after %q was written to %s", reply.Documents, value, key)
				}
				if v := reply.Documents[0].Version; v <= last {
					return fmt.Errorf("version %d of %s follows %d; want it to grow", v, key, last)
				}
				last = reply.Documents[0].Version
			}
		}
		return nil
	})
}

func tryConcurrentWrites(ctx context.Context, t targets.Target) error {
	const writers = 8
	versions, errs := make([]uint64, writers), make([]error, writers)
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			errs[i] = withRouter(ctx, t, func(r *router) error {
				reply, err := r.do(ctx, targets.VerbWrite, "item-1", []byte("x"), targets.RolePrimary)
				if err == nil && len(reply.Documents) == 1 {
					versions[i] = reply.Documents[0].Version
				}
				return err
			})
		})
	}
	all.Wait()
	seen := map[uint64]bool{}
	for i, v := range versions {
		if errs[i] != nil {
			return errs[i]
		}
		if v == 0 || seen[v] {
			return fmt.Errorf("%d writers at once got the versions %v; want each one of its own, with the reply", writers, versions)
		}
		seen[v] = true
	}
	return nil
}

func tryScatter(ctx context.Context, t targets.Target) error {
	return withRouter(ctx, t, func(r *router) error {
		roles := []targets.Role{targets.RolePrimary}
		if t.Info().Has(targets.CapReplicas) {
			roles = append(roles, targets.RoleSecondary)
		}
		for _, role := range roles {
			counts, err := r.scan(ctx, role, targets.ConcernLocal)
			if err != nil {
				return err
			}
			if err := wantOnce(counts, r.topology.Documents); err != nil {
				return fmt.Errorf("scatter read of the %s nodes: %w", role, err)
			}
		}
		return nil
	})
}

func tryNobody(ctx context.Context, t targets.Target) error {
	return withRouter(ctx, t, func(r *router) error {
		good, err := r.op(ctx, targets.VerbRead, "item-0", nil, targets.RolePrimary)
		if err != nil {
			return err
		}
		for what, spoil := range map[string]func(*targets.Op){
			"an unknown node":           func(op *targets.Op) { op.Node = "nobody" },
			"an unknown verb":           func(op *targets.Op) { op.Verb = "drop" },
			"an unknown read concern":   func(op *targets.Op) { op.Concern = "hopeful" },
			"an object that is no such": func(op *targets.Op) { op.Object = targets.Object{Kind: "route", ID: "nowhere"} },
		} {
			op := good
			spoil(&op)
			if err := wantOutcome(t.Do(ctx, op), targets.Refused); err != nil {
				return fmt.Errorf("an operation with %s: %w", what, err)
			}
		}
		return nil
	})
}

func trySecondaryWrite(ctx context.Context, t targets.Target) error {
	return withRouter(ctx, t, func(r *router) error {
		op, err := r.op(ctx, targets.VerbWrite, "item-0", []byte("x"), targets.RoleSecondary)
		if err != nil {
			return err
		}
		return wantRefusal(t.Do(ctx, op), targets.CodeNotPrimary)
	})
}

func trySecondaryRead(ctx context.Context, t targets.Target) error {
	return withRouter(ctx, t, func(r *router) error {
		value := []byte("for all replicas")
		if _, err := r.do(ctx, targets.VerbWrite, "item-2", value, targets.RolePrimary); err != nil {
			return err
		}
		return eventually(ctx, func() error {
			reply, err := r.do(ctx, targets.VerbRead, "item-2", nil, targets.RoleSecondary)
			if err != nil {
				return err
			}
			if len(reply.Documents) != 1 || !bytes.Equal(reply.Documents[0].Value, value) {
				return fmt.Errorf("secondary %s has %v; want what the primary has", reply.Node, reply.Documents)
			}
			return nil
		})
	})
}
