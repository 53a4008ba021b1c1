package fleet_test

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/targettest"
	"github.com/metachaos/metachaos/xk6-metacache/fleet"
)

// bare is a target that can do nothing.
type bare struct{}

func (bare) Info() targets.Info                                 { return targets.Info{Kind: "bare"} }
func (bare) Topology(context.Context) (targets.Topology, error) { return targets.Topology{}, nil }
func (bare) Do(context.Context, targets.Op) targets.Reply       { return targets.Reply{} }
func (bare) Close(context.Context) error                        { return nil }

// broken has no topology or, on a split cluster, no entries.
type broken struct{ *split }

func (b broken) Info() targets.Info { return targets.Info{Kind: "broken"} }

func (b broken) Topology(ctx context.Context) (targets.Topology, error) {
	if b.split == nil {
		return targets.Topology{}, errors.New("no topology")
	}
	return b.split.Topology(ctx)
}

func (b broken) Fetch(context.Context, targets.Fetch) ([]targets.Entry, error) {
	return nil, errors.New("no entries")
}

type sessionless struct{ bare }

var _ targets.SelfRouting = sessionless{}

func (sessionless) Open(context.Context, string) (targets.Session, error) {
	return nil, errors.New("no sessions to be had")
}

// observed starts a fleet on a target that keeps the map.
func observed(t *testing.T, target targets.Target, clients int) (*fleet.Fleet, *recorder) {
	t.Helper()
	c, events := fleet.Defaults(), &recorder{}
	c.Clients, c.Timeout = clients, time.Second
	f, err := fleet.New(t.Context(), target, targets.NewBase(), events, c)
	if err != nil {
		t.Fatal(err)
	}
	return f, events
}

func TestSessionsOfATargetThatKeepsTheMap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := targettest.NewLibrary()
		f, events := observed(t, l, 2)
		defer f.Close()
		const key = "item-0"
		first := f.Read(t.Context(), 0, key)
		e := first.Event
		if e.Outcome != targets.Done || string(first.Documents[0].Value) != key || e.HopCount != 1 || e.Cache != targets.CacheNone ||
			e.Object != l.Place(key) || e.Client != "c-0" || e.Shard == "" || e.Hops != nil || first.Redirects != 0 || first.EpochLag != 0 {
			t.Errorf("the read: %+v", first)
		}
		home := e.Shard
		to := map[string]string{"s1": "s2", "s2": "s3", "s3": "s1"}[home]
		for _, stage := range []targets.Stage{targets.StageHandedOver, targets.StageCleaned} {
			if _, err := l.Migrate(t.Context(), l.Place(key), to, stage); err != nil {
				t.Fatal(err)
			}
		}
		for client, want := range []int{2, 2} { // each has a map of its own to correct
			r := f.Write(t.Context(), client, key, []byte("x"))
			if e := r.Event; e.Outcome != targets.Done || e.HopCount != want || r.Redirects != want-1 || e.Shard != to || e.Version == 0 {
				t.Errorf("client %d after the move: %+v", client, r)
			}
		}
		l.Pin(to, key, home)
		if r := f.Read(t.Context(), 0, key); r.Event.Outcome != targets.Refused || r.Event.Code != targets.CodeRedirectLimit || r.Redirects != 3 {
			t.Errorf("a split view: %+v", r)
		}
		scan := f.Scan(t.Context(), 0)
		if e := scan.Event; e.Outcome != targets.Done || e.Documents != 60 || e.Duplicates != 0 || e.Missing != 0 || scan.Redirects != 0 || e.HopCount != 3 {
			t.Errorf("the scan: %+v", e)
		}
		if got := len(events.events); got != 5 || len(events.of(targets.EventPull, "")) != 0 {
			t.Errorf("%d events: %+v", got, events.events)
		}
	})
}

// slow is a target whose sessions take their time, and notice when they are
// used by two at once.
type slow struct {
	bare
	takes time.Duration

	mu     sync.Mutex
	using  int
	abused bool
	closed int
}

var (
	_ targets.SelfRouting = (*slow)(nil)
	_ targets.Session     = (*slowSession)(nil)
)

func (s *slow) Open(context.Context, string) (targets.Session, error) { return &slowSession{s}, nil }

type slowSession struct{ *slow }

func (s *slowSession) use(by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.using += by
	s.abused = s.abused || s.using > 1 || s.closed > 0 && by > 0
}

func (s *slowSession) Do(ctx context.Context, _ targets.Op) targets.Reply {
	s.use(1)
	defer s.use(-1)
	select {
	case <-time.After(s.takes):
		return targets.Reply{Outcome: targets.Done, Epoch: 9, Hops: 1}
	case <-ctx.Done():
		return targets.Reply{Outcome: targets.Unknown, Code: targets.CodeTimeout, Hops: 1}
	}
}

func (s *slowSession) Close() error {
	s.use(1)
	defer s.use(-1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed++
	return errors.New("closed with a sigh")
}

// Operations of one client queue for its session. Whoever has no time left
// gives up before it begins, so that nothing can have happened.
func TestOneSessionServesOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &slow{takes: 400 * time.Millisecond}
		f, events := observed(t, target, 1)
		brief, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		var all sync.WaitGroup
		for _, ctx := range []context.Context{t.Context(), brief, t.Context(), brief} {
			all.Go(func() {
				// The library's epoch, 9, says nothing of how far it was behind.
				if r := f.Write(ctx, 0, "key", nil); r.EpochLag != 0 {
					t.Errorf("epoch lag %d of a client that holds no epochs", r.EpochLag)
				}
			})
			synctest.Wait()
		}
		closing := make(chan error)
		go func() { closing <- f.Close() }() // and waits for its turn
		all.Wait()
		if err := <-closing; err == nil {
			t.Error("the session's error is lost")
		}
		if err := f.Close(); err != nil {
			t.Errorf("closed twice: %v", err)
		}
		took := map[targets.Outcome][]time.Duration{}
		for _, e := range events.of(targets.EventWrite, "") {
			took[e.Outcome] = append(took[e.Outcome], e.End-e.Start)
			if e.Outcome == targets.Refused && (e.HopCount != 0 || e.Code != targets.CodeTimeout) {
				t.Errorf("refused: %+v", e)
			}
		}
		const ms = time.Millisecond
		want := map[targets.Outcome][]time.Duration{targets.Refused: {100 * ms, 100 * ms}, targets.Done: {400 * ms, 800 * ms}}
		if !reflect.DeepEqual(took, want) {
			t.Errorf("operations took %v, want %v", took, want)
		}
		if r := f.Read(t.Context(), 0, "key"); r.Event.Outcome != targets.Refused || r.Event.Code != targets.CodeUnavailable {
			t.Errorf("after Close: %+v", r.Event)
		}
		target.mu.Lock()
		defer target.mu.Unlock()
		if target.abused || target.closed != 1 {
			t.Errorf("used by two at once or after its end: %v; closed %d times", target.abused, target.closed)
		}
	})
}
