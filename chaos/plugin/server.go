package plugin

import (
	"context"

	"github.com/metachaos/metachaos/chaos"
	"github.com/metachaos/metachaos/chaos/plugin/internal/pb"
)

// guest answers the host's calls.
type guest struct {
	pb.UnimplementedFaultsServer
	named
	ledger *ledger
}

var _ pb.FaultsServer = (*guest)(nil)

func newGuest(faults []chaos.Fault) *guest {
	g := &guest{named: named{faults: map[string]chaos.Fault{}}, ledger: newLedger()}
	for _, f := range faults {
		name := f.Describe().Name
		g.faults[name] = f
		g.order = append(g.order, name)
	}
	return g
}

func (g *guest) Describe(context.Context, *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	out := &pb.DescribeResponse{}
	for _, name := range g.order {
		out.Descriptions = append(out.Descriptions, descriptionToWire(g.faults[name].Describe()))
	}
	return out, nil
}

func (g *guest) Validate(_ context.Context, r *pb.ValidateRequest) (*pb.ValidateResponse, error) {
	f, err := g.get(r.GetStep().GetFault())
	if err != nil {
		return nil, err
	}
	step := stepFromWire(r.GetStep())
	if err := f.Validate(step); err != nil {
		return nil, err
	}
	out := &pb.ValidateResponse{}
	if f, ok := f.(chaos.StepNeeds); ok {
		needs, rule := f.NeedsOf(step)
		out.Needs, out.Rule = texts(needs), rule
	}
	return out, nil
}

func (g *guest) Plan(ctx context.Context, r *pb.PlanRequest) (*pb.PlanResponse, error) {
	f, err := g.get(r.GetStep().GetFault())
	if err != nil {
		return nil, err
	}
	scope, err := scopeFromWire(r.GetScope())
	if err != nil {
		return nil, err
	}
	h, err := f.Plan(ctx, stepFromWire(r.GetStep()), scope)
	if err != nil {
		return nil, err
	}
	return &pb.PlanResponse{Handle: handleToWire(h)}, nil
}

func (g *guest) Inject(ctx context.Context, r *pb.InjectRequest) (*pb.InjectResponse, error) {
	f, err := g.get(r.GetHandle().GetFault())
	if err != nil {
		return nil, err
	}
	if err := g.ledger.inject(ctx, f, handleFromWire(r.GetHandle())); err != nil {
		return nil, err
	}
	return &pb.InjectResponse{}, nil
}

func (g *guest) Status(ctx context.Context, r *pb.StatusRequest) (*pb.StatusResponse, error) {
	f, err := g.get(r.GetHandle().GetFault())
	if err != nil {
		return nil, err
	}
	s, err := f.Status(ctx, handleFromWire(r.GetHandle()))
	if err != nil {
		return nil, err
	}
	return &pb.StatusResponse{Effective: s.Effective, Evidence: s.Evidence}, nil
}

func (g *guest) Revert(ctx context.Context, r *pb.RevertRequest) (*pb.RevertResponse, error) {
	h := handleFromWire(r.GetHandle())
	f, err := g.get(h.Fault)
	if err != nil {
		return nil, err
	}
	if in, ok := g.ledger.get(h.ID); ok {
		return &pb.RevertResponse{Reversal: reversalToWire(in.revert(ctx))}, nil
	}
	return &pb.RevertResponse{Reversal: reversalToWire(f.Revert(ctx, h))}, nil
}

func (g *guest) Recover(ctx context.Context, r *pb.RecoverRequest) (*pb.RecoverResponse, error) {
	h := handleFromWire(r.GetHandle())
	f, err := g.get(h.Fault)
	if err != nil {
		return nil, err
	}
	return &pb.RecoverResponse{Reversal: reversalToWire(f.Recover(ctx, h))}, nil
}

func (g *guest) RevertAll(ctx context.Context, _ *pb.RevertAllRequest) (*pb.RevertAllResponse, error) {
	out := &pb.RevertAllResponse{}
	for _, left := range g.ledger.revertAll(ctx) {
		out.Results = append(out.Results, &pb.Leftover{Id: left.handle.ID, Fault: left.handle.Fault,
			Reversal: reversalToWire(left.reversal)})
	}
	return out, nil
}
