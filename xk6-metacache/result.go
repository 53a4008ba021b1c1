package metacache

import (
	"slices"

	"github.com/grafana/sobek"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/xk6-metacache/fleet"
)

// result shows a fleet.Result to a script. Its fields are made when they are
// read: most scripts read two of them.
type result struct {
	rt *sobek.Runtime
	r  *fleet.Result
}

var _ sobek.DynamicObject = (*result)(nil)

// resultKeys are the fields, in the order in which they are listed.
var resultKeys = []string{
	"ok", "outcome", "code", "epochSent", "epochServed", "epochLag", "owner", "node", "shard", "hops", "redirects", "loop", "cache",
	"documents", "duplicates", "missing", "value", "version", "duration",
}

// Get implements [sobek.DynamicObject].
func (o *result) Get(key string) sobek.Value {
	v, ok := o.field(key)
	if !ok {
		return nil
	}
	return o.rt.ToValue(v)
}

func (o *result) field(key string) (any, bool) {
	e := &o.r.Event
	switch key {
	case "ok":
		return e.Outcome == targets.Done, true
	case "outcome":
		return string(e.Outcome), true
	case "code":
		return string(e.Code), true
	case "epochSent":
		return int64(e.Sent), true
	case "epochServed":
		return int64(e.Served), true
	case "epochLag":
		return int64(o.r.EpochLag), true
	case "owner":
		return o.r.Owner, true
	case "node":
		return string(e.Node), true
	case "shard":
		return e.Shard, true
	case "hops":
		return e.HopCount, true
	case "redirects":
		return o.r.Redirects, true
	case "loop":
		return o.r.Loop, true
	case "cache":
		return string(e.Cache), true
	case "documents":
		return e.Documents, true
	case "duplicates":
		return e.Duplicates, true
	case "missing":
		return e.Missing, true
	case "value":
		if e.Verb != targets.EventRead || len(o.r.Documents) != 1 {
			return nil, true
		}
		return string(o.r.Documents[0].Value), true
	case "version":
		return int64(e.Version), true
	case "duration":
		return milliseconds(e), true
	}
	return nil, false
}

// Set implements [sobek.DynamicObject]: results cannot be changed.
func (o *result) Set(string, sobek.Value) bool { return false }

// Has implements [sobek.DynamicObject].
func (o *result) Has(key string) bool { return slices.Contains(resultKeys, key) }

// Delete implements [sobek.DynamicObject].
func (o *result) Delete(key string) bool { return !o.Has(key) }

// Keys implements [sobek.DynamicObject].
func (o *result) Keys() []string { return resultKeys }
