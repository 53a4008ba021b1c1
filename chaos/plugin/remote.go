package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/metachaos/metachaos/chaos"
	"github.com/metachaos/metachaos/chaos/plugin/internal/pb"
	"github.com/metachaos/metachaos/targets"
)

// remoteFault is a fault that lives in a plugin.
type remoteFault struct {
	client      *Client
	description chaos.Description
}

var (
	_ chaos.Fault     = (*remoteFault)(nil)
	_ chaos.StepNeeds = (*remoteFault)(nil)
)

// askLimit bounds calls that come without a context.
const askLimit = 10 * time.Second

func (f *remoteFault) Describe() chaos.Description { return f.description }

func (f *remoteFault) Validate(step chaos.Step) error {
	_, err := f.validate(step)
	return err
}

// NeedsOf asks the plugin; a step that is not valid needs nothing.
func (f *remoteFault) NeedsOf(step chaos.Step) ([]targets.Capability, string) {
	answer, err := f.validate(step)
	if err != nil {
		return nil, ""
	}
	return words[targets.Capability](answer.GetNeeds()), answer.GetRule()
}

func (f *remoteFault) validate(step chaos.Step) (*pb.ValidateResponse, error) {
	s, err := stepToWire(step)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), askLimit)
	defer cancel()
	answer, err := f.client.rpc.Validate(ctx, &pb.ValidateRequest{Step: s})
	return answer, plain(err)
}

func (f *remoteFault) Plan(ctx context.Context, step chaos.Step, scope chaos.Scope) (chaos.Handle, error) {
	s, err := stepToWire(step)
	if err != nil {
		return chaos.Handle{}, err
	}
	answer, err := f.client.rpc.Plan(ctx, &pb.PlanRequest{Step: s, Scope: scopeToWire(scope)})
	return handleFromWire(answer.GetHandle()), plain(err)
}

func (f *remoteFault) Inject(ctx context.Context, h chaos.Handle) error {
	f.client.open.begin(h)
	_, err := f.client.rpc.Inject(ctx, &pb.InjectRequest{Handle: handleToWire(h)})
	return plain(err)
}

func (f *remoteFault) Status(ctx context.Context, h chaos.Handle) (chaos.Status, error) {
	answer, err := f.client.rpc.Status(ctx, &pb.StatusRequest{Handle: handleToWire(h)})
	return chaos.Status{Effective: answer.GetEffective(), Evidence: answer.GetEvidence()}, plain(err)
}

func (f *remoteFault) Revert(ctx context.Context, h chaos.Handle) chaos.Reversal {
	answer, err := f.client.rpc.Revert(ctx, &pb.RevertRequest{Handle: handleToWire(h)})
	if err != nil {
		return f.noAnswer(err)
	}
	rev := reversalFromWire(answer.GetReversal())
	f.client.open.settle(h.ID, rev)
	return rev
}

func (f *remoteFault) Recover(ctx context.Context, h chaos.Handle) chaos.Reversal {
	answer, err := f.client.rpc.Recover(ctx, &pb.RecoverRequest{Handle: handleToWire(h)})
	if err != nil {
		return f.noAnswer(err)
	}
	return reversalFromWire(answer.GetReversal())
}

func (f *remoteFault) noAnswer(err error) chaos.Reversal {
	return chaos.Reversal{Undone: chaos.RevertUnknown,
		Evidence: fmt.Sprintf("plugin %s gave no answer: %v", f.client.path, plain(err))}
}

// plain turns an error of a call into one that reads like a local one.
func plain(err error) error {
	if err == nil {
		return nil
	}
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	switch s.Code() {
	case codes.Canceled:
		return fmt.Errorf("%s: %w", s.Message(), context.Canceled)
	case codes.DeadlineExceeded:
		return fmt.Errorf("%s: %w", s.Message(), context.DeadlineExceeded)
	case codes.Unavailable:
		return fmt.Errorf("the plugin cannot be reached: %s", s.Message())
	default:
		return errors.New(s.Message())
	}
}

// openInjections are what the host has asked a plugin to inject and has not
// seen reverted. The zero value is empty.
type openInjections struct {
	mu   sync.Mutex
	open map[string]*chaos.StuckError // with the last thing heard
}

func (o *openInjections) begin(h chaos.Handle) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open == nil {
		o.open = map[string]*chaos.StuckError{}
	}
	o.open[h.ID] = &chaos.StuckError{ID: h.ID, Fault: h.Fault, Reversal: chaos.Reversal{
		Undone: chaos.RevertUnknown, Evidence: "the plugin did not tell", HowTo: "run 'metachaos recover'"}}
}

func (o *openInjections) settle(id string, rev chaos.Reversal) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if rev.Undone == chaos.Reverted {
		delete(o.open, id)
	} else if stuck, ok := o.open[id]; ok {
		rev.HowTo = cmp.Or(rev.HowTo, stuck.Reversal.HowTo)
		stuck.Reversal = rev
	}
}

// settleAll settles each injection, as reverted if the plugin does not hold it.
func (o *openInjections) settleAll(held map[string]chaos.Reversal) {
	for _, stuck := range o.snapshot() {
		rev, ok := held[stuck.ID]
		if !ok {
			rev = chaos.Reversal{Undone: chaos.Reverted}
		}
		o.settle(stuck.ID, rev)
	}
}

// snapshot returns what is open, sorted by id.
func (o *openInjections) snapshot() []chaos.StuckError {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []chaos.StuckError
	for _, id := range slices.Sorted(maps.Keys(o.open)) {
		out = append(out, *o.open[id])
	}
	return out
}

func (o *openInjections) left() []error {
	var out []error
	for _, stuck := range o.snapshot() {
		out = append(out, &stuck)
	}
	return out
}
