package plugin

import (
	"fmt"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/metachaos/metachaos/chaos"
	"github.com/metachaos/metachaos/chaos/internal/with"
	"github.com/metachaos/metachaos/chaos/plugin/internal/pb"
	"github.com/metachaos/metachaos/targets"
)

func stepToWire(s chaos.Step) (*pb.Step, error) {
	text, err := with.Text(s.Decode)
	if err != nil {
		return nil, err
	}
	return &pb.Step{Id: s.ID, Fault: s.Fault, At: durationpb.New(s.At), For: durationpb.New(s.For),
		On:   &pb.Selector{Node: string(s.On.Node), Shard: s.On.Shard, Role: string(s.On.Role), Index: int32(s.On.Index)},
		With: text, Seed: s.Seed}, nil
}

func stepFromWire(s *pb.Step) chaos.Step {
	on := s.GetOn()
	return chaos.Step{ID: s.GetId(), Fault: s.GetFault(), At: s.GetAt().AsDuration(), For: s.GetFor().AsDuration(),
		On: targets.Selector{Node: targets.NodeID(on.GetNode()), Shard: on.GetShard(),
			Role: targets.Role(on.GetRole()), Index: int(on.GetIndex())},
		Decode: with.Strict(s.GetWith()), Seed: s.GetSeed()}
}

func scopeToWire(s chaos.Scope) *pb.Scope {
	out := &pb.Scope{Kind: s.Info.Kind, Version: s.Info.Version, Capabilities: texts(s.Info.Capabilities),
		Documents: int64(s.Topology.Documents)}
	for _, n := range s.Topology.Nodes {
		out.Nodes = append(out.Nodes, &pb.Node{Id: string(n.ID), Shard: n.Shard, Role: string(n.Role),
			Index: int32(n.Index), Addr: n.Addr, Pid: int32(n.PID)})
	}
	for _, o := range s.Topology.Objects {
		out.Objects = append(out.Objects, o.String())
	}
	for _, p := range s.Processes {
		out.Processes = append(out.Processes, &pb.Process{Node: string(p.Node), Pid: int32(p.PID), Start: p.Start, Boot: p.Boot})
	}
	return out
}

func scopeFromWire(s *pb.Scope) (chaos.Scope, error) {
	out := chaos.Scope{Info: targets.Info{Kind: s.GetKind(), Version: s.GetVersion(),
		Capabilities: words[targets.Capability](s.GetCapabilities())}}
	out.Topology.Documents = int(s.GetDocuments())
	for _, n := range s.GetNodes() {
		out.Topology.Nodes = append(out.Topology.Nodes, targets.Node{ID: targets.NodeID(n.GetId()), Shard: n.GetShard(),
			Role: targets.Role(n.GetRole()), Index: int(n.GetIndex()), Addr: n.GetAddr(), PID: int(n.GetPid())})
	}
	for _, text := range s.GetObjects() {
		o, err := targets.ParseObject(text)
		if err != nil {
			return chaos.Scope{}, fmt.Errorf("read scope: %w", err)
		}
		out.Topology.Objects = append(out.Topology.Objects, o)
	}
	for _, p := range s.GetProcesses() {
		out.Processes = append(out.Processes, targets.Process{Node: targets.NodeID(p.GetNode()),
			PID: int(p.GetPid()), Start: p.GetStart(), Boot: p.GetBoot()})
	}
	return out, nil
}

func handleToWire(h chaos.Handle) *pb.Handle {
	return &pb.Handle{Id: h.ID, Fault: h.Fault, Lease: durationpb.New(h.Lease), Touches: h.Touches, State: h.State}
}

func handleFromWire(h *pb.Handle) chaos.Handle {
	return chaos.Handle{ID: h.GetId(), Fault: h.GetFault(), Lease: h.GetLease().AsDuration(),
		Touches: h.GetTouches(), State: h.GetState()}
}

func reversalToWire(r chaos.Reversal) *pb.Reversal {
	return &pb.Reversal{Undone: string(r.Undone), Evidence: r.Evidence, HowTo: r.HowTo}
}

// reversalFromWire believes only the three answers that there are.
func reversalFromWire(r *pb.Reversal) chaos.Reversal {
	out := chaos.Reversal{Undone: chaos.Undone(r.GetUndone()), Evidence: r.GetEvidence(), HowTo: r.GetHowTo()}
	switch out.Undone {
	case chaos.Reverted, chaos.NotReverted, chaos.RevertUnknown:
	default:
		out.Evidence = fmt.Sprintf("the plugin answered %q: %s", out.Undone, out.Evidence)
		out.Undone = chaos.RevertUnknown
	}
	return out
}

func descriptionToWire(d chaos.Description) *pb.Description {
	out := &pb.Description{Name: d.Name, Summary: d.Summary, Instant: d.Instant, Needs: texts(d.Needs), Rule: d.Rule}
	for _, f := range d.Fields {
		out.Fields = append(out.Fields, &pb.Field{Name: f.Name, Type: f.Type, Default: f.Default, Summary: f.Summary})
	}
	return out
}

func descriptionFromWire(d *pb.Description) chaos.Description {
	out := chaos.Description{Name: d.GetName(), Summary: d.GetSummary(), Instant: d.GetInstant(),
		Needs: words[targets.Capability](d.GetNeeds()), Rule: d.GetRule()}
	for _, f := range d.GetFields() {
		out.Fields = append(out.Fields, chaos.Field{Name: f.GetName(), Type: f.GetType(), Default: f.GetDefault(), Summary: f.GetSummary()})
	}
	return out
}

func texts[T ~string](in []T) []string { return words[string](in) }

// words turns one kind of word into another, and nothing into nil.
func words[To, From ~string](in []From) []To {
	if len(in) == 0 {
		return nil
	}
	out := make([]To, len(in))
	for i, w := range in {
		out[i] = To(w)
	}
	return out
}
