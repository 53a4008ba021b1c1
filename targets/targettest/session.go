package targettest

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/metachaos/metachaos/targets"
)

func sessionChecks() []Check {
	return []Check{
		{Name: "sessions see each other's writes", Needs: needs(targets.CapSelfRouting), Try: trySessions},
		{Name: "a session follows what has moved", Needs: needs(targets.CapSelfRouting, targets.CapMigrate), Try: tryMoved},
	}
}

func trySessions(ctx context.Context, t targets.Target) error {
	s := t.(targets.SelfRouting)
	one, err := s.Open(ctx, "one")
	if err != nil {
		return err
	}
	two, err := s.Open(ctx, "two")
	if err != nil {
		return err
	}
	value := []byte("from one to two")
	written := one.Do(ctx, targets.Op{Verb: targets.VerbWrite, Key: "item-3", Value: value})
	if err := wantOutcome(written, targets.Done); err != nil {
		return err
	}
	if err := one.Close(); err != nil {
		return fmt.Errorf("close a session: %w", err)
	}
	read := two.Do(ctx, targets.Op{Verb: targets.VerbRead, Key: "item-3"})
	if err := wantOutcome(read, targets.Done); err != nil {
		return fmt.Errorf("after another session was closed: %w", err)
	}
	if len(read.Documents) != 1 || !bytes.Equal(read.Documents[0].Value, value) {
		return fmt.Errorf("one session wrote %q and another reads %v", value, read.Documents)
	}
	return two.Close()
}

func tryMoved(ctx context.Context, t targets.Target) error {
	top, err := t.Topology(ctx)
	if err != nil {
		return err
	}
	session, err := t.(targets.SelfRouting).Open(ctx, "stale")
	if err != nil {
		return err
	}
	read := func(key string) (int, error) {
		r := session.Do(ctx, targets.Op{Verb: targets.VerbRead, Key: key})
		if err := wantOutcome(r, targets.Done); err != nil {
			return 0, fmt.Errorf("read %s: %w", key, err)
		}
		if len(r.Documents) != 1 {
			return 0, fmt.Errorf("read %s: %d documents; want one", key, len(r.Documents))
		}
		return r.Hops, nil
	}
	if _, err := read("item-0"); err != nil {
		return err
	}
	redirected := false
	for _, shard := range top.Shards() { // item-0 moves at least once
		for _, o := range top.Objects {
			if _, err := t.(targets.Migrator).Migrate(ctx, o, shard, targets.StageCleaned); err != nil {
				return err
			}
		}
		hops, err := read("item-0")
		if err != nil {
			return err
		}
		redirected = redirected || hops > 1
		if hops, err = read("item-0"); err != nil {
			return err
		}
		if hops != 1 {
			return fmt.Errorf("a session that was redirected takes %d hops again; want 1", hops)
		}
	}
	if !redirected {
		return errors.New("an object moved through all shards, and its session counted no redirect")
	}
	return session.Close()
}
