package targettest_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference"
	"github.com/metachaos/metachaos/targets/targettest"
)

// saboteur is an in-memory cluster that breaks one promise: each field, if
// set, replaces what the target does. It pretends to have processes and a
// link as well.
type saboteur struct {
	*reference.Memory
	do        func(op targets.Op, honest targets.Reply) targets.Reply
	topology  func(*targets.Topology)
	info      func(*targets.Info)
	entries   func([]targets.Entry) []targets.Entry
	push      func(*targets.Push) (lost bool)
	truth     func(targets.Truth) (lost bool)
	restart   func(targets.NodeID) error
	migrate   func(targets.Stage) (targets.Stage, error)
	setRule   func(targets.Rule) (targets.Rule, error)
	state     func(*targets.RuleState)
	processes []targets.Process
}

func (s *saboteur) Do(ctx context.Context, op targets.Op) targets.Reply {
	r := s.Memory.Do(ctx, op)
	if s.do != nil {
		r = s.do(op, r)
	}
	return r
}

func (s *saboteur) Topology(ctx context.Context) (targets.Topology, error) {
	t, err := s.Memory.Topology(ctx)
	if s.topology != nil {
		s.topology(&t)
	}
	return t, err
}

func (s *saboteur) Info() targets.Info {
	i := s.Memory.Info()
	if s.info != nil {
		s.info(&i)
	}
	return i
}

func (s *saboteur) Fetch(ctx context.Context, f targets.Fetch) ([]targets.Entry, error) {
	e, err := s.Memory.Fetch(ctx, f)
	if s.entries != nil {
		e = s.entries(e)
	}
	return e, err
}

func (s *saboteur) Watch(ctx context.Context, client string, deliver func(targets.Push)) error {
	return s.Memory.Watch(ctx, client, func(p targets.Push) {
		if s.push == nil || !s.push(&p) {
			deliver(p)
		}
	})
}

func (s *saboteur) FollowTruth(ctx context.Context, deliver func(targets.Truth)) error {
	return s.Memory.FollowTruth(ctx, func(t targets.Truth) {
		if s.truth == nil || !s.truth(t) {
			deliver(t)
		}
	})
}

func (s *saboteur) Restart(ctx context.Context, n targets.NodeID) error {
	if s.restart != nil {
		return s.restart(n)
	}
	return s.Memory.Restart(ctx, n)
}

func (s *saboteur) Migrate(ctx context.Context, o targets.Object, to string, stage targets.Stage) (targets.Entry, error) {
	if s.migrate != nil {
		var err error
		if stage, err = s.migrate(stage); err == nil && stage == "" {
			return targets.Entry{}, nil
		}
	}
	return s.Memory.Migrate(ctx, o, to, stage)
}

func (s *saboteur) SetRule(ctx context.Context, r targets.Rule) error {
	if s.setRule != nil {
		var err error
		if r, err = s.setRule(r); r.Name == "" {
			return err
		}
	}
	return s.Memory.SetRule(ctx, r)
}

func (s *saboteur) RuleState(ctx context.Context, id string) (targets.RuleState, error) {
	state, err := s.Memory.RuleState(ctx, id)
	if s.state != nil {
		s.state(&state)
	}
	return state, err
}

func (s *saboteur) Processes() []targets.Process { return s.processes }

func (s *saboteur) LinkAddr(targets.Link) (string, error) { return "127.0.0.1:1", nil }

// Reroute pretends: nothing is led anywhere.
func (s *saboteur) Reroute(context.Context, targets.Link, string) error { return nil }

func claims(c targets.Capability) func(*targets.Info) {
	return func(i *targets.Info) { i.Capabilities = append(i.Capabilities, c) }
}

// lies answers every operation of that verb (or any, if empty) that was not
// done as if it had been, and the other way round.
func lies(s *saboteur) {
	s.do = func(_ targets.Op, r targets.Reply) targets.Reply {
		r.Outcome, r.Code = targets.Done, ""
		return r
	}
}

func forgets(s *saboteur) {
	s.do = func(op targets.Op, r targets.Reply) targets.Reply {
		r.Documents = nil
		return r
	}
}

// TestEveryCheckCanFail breaks the promise of each check.
func TestEveryCheckCanFail(t *testing.T) {
	t.Parallel()
	broken := map[string]func(*saboteur){
		"topology is consistent":                     func(s *saboteur) { s.topology = func(t *targets.Topology) { t.Nodes[1].ID = t.Nodes[0].ID } },
		"capabilities have their interfaces":         func(s *saboteur) { s.info = claims(targets.CapSelfRouting) },
		"an ended context ends an operation":         lies,
		"a closed target answers and is never done":  lies,
		"loaded documents are there":                 forgets,
		"a write is read back and its version grows": forgets,
		"writes at once get versions of their own":   forgets,
		"a scatter read has each document once": func(s *saboteur) {
			s.do = func(_ targets.Op, r targets.Reply) targets.Reply {
				r.Documents = append(r.Documents, r.Documents...)
				return r
			}
		},
		"an operation for nobody is refused":  lies,
		"a secondary takes no write":          lies,
		"a secondary serves what was written": forgets,
		"the current epoch is served under that epoch": func(s *saboteur) {
			s.do = func(_ targets.Op, r targets.Reply) targets.Reply { r.Epoch++; return r }
		},
		"a newer epoch than the node's is refused":       lies,
		"a node that does not own the object refuses it": lies,
		"a stale epoch is refused with the new owner": func(s *saboteur) {
			s.do = func(_ targets.Op, r targets.Reply) targets.Reply { r.Owner = "nobody"; return r }
		},
		"a migration shows its three stages": func(s *saboteur) {
			s.migrate = func(targets.Stage) (targets.Stage, error) { return targets.StageCleaned, nil }
		},
		"a migration to nowhere is an error": func(s *saboteur) {
			s.migrate = func(targets.Stage) (targets.Stage, error) { return "", nil }
		},
		"a fetch hands out what exists": func(s *saboteur) {
			s.entries = func(e []targets.Entry) []targets.Entry { return e[1:] }
		},
		"pushes are numbered without holes": func(s *saboteur) {
			s.push = func(p *targets.Push) bool { p.Seq *= 2; return false }
		},
		"a change is pushed":                 func(s *saboteur) { s.push = func(p *targets.Push) bool { return len(p.Entries) > 0 } },
		"the truth begins with every object": func(s *saboteur) { s.truth = func(t targets.Truth) bool { return t.Object.ID == "r0003" } },
		"the truth ends with what was granted last": func(s *saboteur) {
			s.truth = func(t targets.Truth) bool { return t.Kind == targets.TruthGrant }
		},
		"a restarted node has its documents": func(s *saboteur) {
			s.restart = func(targets.NodeID) error { return errors.New("worn out") }
		},
		"restarting nobody is an error": func(s *saboteur) { s.restart = func(targets.NodeID) error { return nil } },
		"processes are those of the nodes": func(s *saboteur) {
			s.info = claims(targets.CapProcesses)
			s.processes = []targets.Process{{Node: "s1-0", PID: os.Getpid()}}
		},
		"a rule is armed once and cleared often": func(s *saboteur) { s.state = func(r *targets.RuleState) { r.Armed = true } },
		"a rule lapses with its lease": func(s *saboteur) {
			s.setRule = func(r targets.Rule) (targets.Rule, error) { r.Lease = time.Hour; return r, nil }
		},
		"a rule that cannot be is refused": func(s *saboteur) {
			s.setRule = func(targets.Rule) (targets.Rule, error) { return targets.Rule{}, nil }
		},
		"pushes can be led through a proxy": func(s *saboteur) { s.info = claims(targets.CapProxy) },
	}
	for _, c := range targettest.Checks() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			target := brokenTarget(t, c, broken)
			// Some promises are only known to be broken when time has run out.
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			if !c.Applies(target.Info()) {
				t.Fatalf("the check does not apply to the broken target")
			}
			if err := c.Try(ctx, target); err == nil {
				t.Error("the check finds nothing wrong with a target that breaks its promise")
			}
			if err := target.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func brokenTarget(t *testing.T, c targettest.Check, broken map[string]func(*saboteur)) targets.Target {
	t.Helper()
	if len(c.Needs) > 0 && c.Needs[0] == targets.CapSelfRouting {
		return forgetful{targettest.NewLibrary()}
	}
	breakIt, ok := broken[c.Name]
	if !ok {
		t.Fatalf("nothing shows that the check can fail")
	}
	m, err := reference.StartInMemory(reference.Config{Documents: 40, Objects: 4, PushHeartbeat: 20 * time.Millisecond}, targets.NewBase())
	if err != nil {
		t.Fatal(err)
	}
	s := &saboteur{Memory: m}
	breakIt(s)
	return s
}

// forgetful is a library whose sessions lose what they read.
type forgetful struct{ *targettest.Library }

func (f forgetful) Open(ctx context.Context, client string) (targets.Session, error) {
	s, err := f.Library.Open(ctx, client)
	return amnesiac{s}, err
}

type amnesiac struct{ targets.Session }

func (a amnesiac) Do(ctx context.Context, op targets.Op) targets.Reply {
	r := a.Session.Do(ctx, op)
	r.Documents = nil
	return r
}
