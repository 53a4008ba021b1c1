package wire

import (
	"context"
	"reflect"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference/internal/node"
	"github.com/metachaos/metachaos/targets/reference/internal/pb"
)

func TestOutcomeOfErrors(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, row := range []struct {
		ctx     context.Context
		code    codes.Code
		sent    bool
		outcome targets.Outcome
		want    targets.Code
	}{
		{t.Context(), codes.DeadlineExceeded, true, targets.Unknown, targets.CodeTimeout},
		{ended, codes.Canceled, true, targets.Unknown, targets.CodeTimeout},
		{t.Context(), codes.Unavailable, false, targets.Refused, targets.CodeUnavailable},
		{t.Context(), codes.Unavailable, true, targets.Unknown, targets.CodeConnectionLost},
		// The connection was closed because the node has moved.
		{t.Context(), codes.Canceled, true, targets.Unknown, targets.CodeConnectionLost},
		{t.Context(), codes.Unimplemented, true, targets.Refused, node.CodeInvalid},
		{t.Context(), codes.Internal, true, targets.Unknown, targets.CodeInternal},
	} {
		outcome, code := outcomeOf(row.ctx, status.Error(row.code, "x"), row.sent)
		if outcome != row.outcome || code != row.want {
			t.Errorf("%v (sent: %v) is %s %s; want %s %s", row.code, row.sent, outcome, code, row.outcome, row.want)
		}
	}
}

// FuzzRequest decodes hostile bytes as a request: what is taken must survive
// the way back.
func FuzzRequest(f *testing.F) {
	o := targets.Object{Kind: targets.KindRoute, ID: "r0001"}
	for _, op := range []targets.Op{
		{Verb: targets.VerbRead, Node: "s1-0", Object: o, Key: "item-1", Epoch: 4, Client: "c"},
		{Verb: targets.VerbScan, Epochs: map[targets.Object]targets.Epoch{o: 4}},
		{},
	} {
		raw, err := proto.Marshal(toOp(op))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte{0x42, 0x02, 0x0a, 0x00})
	f.Fuzz(func(t *testing.T, raw []byte) {
		var r pb.DoRequest
		if proto.Unmarshal(raw, &r) != nil {
			return
		}
		op, err := fromOp(&r)
		if err != nil {
			return
		}
		back, err := fromOp(toOp(op))
		if err != nil || !reflect.DeepEqual(op, back) {
			t.Fatalf("%+v came back as %+v, %v", op, back, err)
		}
	})
}
