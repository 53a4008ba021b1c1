package metacache

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/grafana/sobek"

	"github.com/metachaos/metachaos/internal/suggest"
	"github.com/metachaos/metachaos/load/script"
	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/xk6-metacache/client"
	"github.com/metachaos/metachaos/xk6-metacache/fleet"
)

// options are the options of a Fleet. It is comparable, so that VUs which
// disagree are found.
type options struct {
	clients, streams     int
	policy               client.Policy
	refresh              fleet.Refresh
	warm                 bool
	preference           targets.Preference
	concern              targets.Concern
	timeout, pullTimeout time.Duration
}

func defaultOptions() options {
	d := fleet.Defaults()
	return options{clients: d.Clients, streams: d.Streams, policy: d.Policy, refresh: d.Refresh, warm: d.Warm,
		preference: d.Preference, concern: d.Concern, timeout: d.Timeout, pullTimeout: d.PullTimeout}
}

func (o options) config() fleet.Config {
	c := fleet.Defaults()
	c.Clients, c.Streams, c.Policy, c.Refresh, c.Warm = o.clients, o.streams, o.policy, o.refresh, o.warm
	c.Preference, c.Concern, c.Timeout, c.PullTimeout = o.preference, o.concern, o.timeout, o.pullTimeout
	return c
}

// protections are the shorthands for the whole policy.
func protections(v sobek.Value) (client.Policy, error) {
	all := client.Recommended()
	switch v.Export() {
	case "recommended":
		return all, nil
	case "none":
		return client.Policy{TTL: all.TTL, MaxAttempts: all.MaxAttempts, MaxRedirects: -1}, nil
	}
	return all, fmt.Errorf("protections: got %s, want 'none' or 'recommended'", show(v))
}

// setters read one option each; v is never undefined or null.
var setters = map[string]func(o *options, v sobek.Value) error{
	"clients":           func(o *options, v sobek.Value) error { return toInt(v, &o.clients) },
	"ttl":               func(o *options, v sobek.Value) error { return toDuration(v, &o.policy.TTL) },
	"jitter":            func(o *options, v sobek.Value) error { return toFloat(v, &o.policy.Jitter) },
	"push":              func(o *options, v sobek.Value) error { return toBool(v, &o.policy.Push) },
	"orderedPush":       func(o *options, v sobek.Value) error { return toBool(v, &o.policy.OrderedPush) },
	"gapPull":           func(o *options, v sobek.Value) error { return toBool(v, &o.policy.GapPull) },
	"epochs":            func(o *options, v sobek.Value) error { return toBool(v, &o.policy.Epochs) },
	"refreshOnMismatch": func(o *options, v sobek.Value) error { return toBool(v, &o.policy.RefreshOnMismatch) },
	"periodicPull":      func(o *options, v sobek.Value) error { return toDuration(v, &o.policy.PeriodicPull) },
	"singleflight":      func(o *options, v sobek.Value) error { return toBool(v, &o.policy.Singleflight) },
	"backoffBase":       func(o *options, v sobek.Value) error { return toDuration(v, &o.policy.BackoffBase) },
	"backoffMax":        func(o *options, v sobek.Value) error { return toDuration(v, &o.policy.BackoffMax) },
	"maxAttempts":       func(o *options, v sobek.Value) error { return toInt(v, &o.policy.MaxAttempts) },
	"maxRedirects":      func(o *options, v sobek.Value) error { return toInt(v, &o.policy.MaxRedirects) },
	"refresh":           func(o *options, v sobek.Value) error { return toText(v, &o.refresh) },
	"warm":              func(o *options, v sobek.Value) error { return toBool(v, &o.warm) },
	"readPreference":    func(o *options, v sobek.Value) error { return toText(v, &o.preference) },
	"readConcern":       func(o *options, v sobek.Value) error { return toText(v, &o.concern) },
	"timeout":           func(o *options, v sobek.Value) error { return toDuration(v, &o.timeout) },
	"pullTimeout":       func(o *options, v sobek.Value) error { return toDuration(v, &o.pullTimeout) },
	"streams":           func(o *options, v sobek.Value) error { return toInt(v, &o.streams) },
}

// parseOptions reads the argument of new Fleet(). The shorthand "protections"
// is applied first, wherever it stands, and single switches change it. What is
// undefined or null keeps its default.
func parseOptions(v sobek.Value) (options, error) {
	o := defaultOptions()
	if absent(v) {
		return o, nil
	}
	object, ok := v.(*sobek.Object)
	if !ok {
		return o, fmt.Errorf("the options are %s, want an object such as { clients: 100, ttl: '60s' }", show(v))
	}
	if p := object.Get("protections"); !absent(p) {
		var err error
		if o.policy, err = protections(p); err != nil {
			return o, err
		}
	}
	for _, key := range object.Keys() {
		set, ok := setters[key]
		if !ok && key != "protections" {
			known := slices.Sorted(maps.Keys(setters))
			return o, fmt.Errorf("unknown option %q (%s)", key, suggest.Name(key, append(known, "protections")))
		}
		value := object.Get(key)
		if !ok || absent(value) {
			continue
		}
		if err := set(&o, value); err != nil {
			return o, fmt.Errorf("%s: %w", key, err)
		}
	}
	return o, o.config().Validate()
}

func absent(v sobek.Value) bool { return v == nil || sobek.IsUndefined(v) || sobek.IsNull(v) }

// show writes a value in an error message so that its type can be told.
func show(v sobek.Value) string {
	switch v := v.(type) {
	case nil:
		return "undefined"
	case sobek.String:
		return strconv.Quote(v.String())
	case *sobek.Object:
		return "an object of class " + v.ClassName()
	}
	return v.String()
}

func toInt(v sobek.Value, to *int) error {
	n, ok := v.Export().(int64)
	if !ok {
		return fmt.Errorf("got %s, want a whole number", show(v))
	}
	*to = int(n)
	return nil
}

func toFloat(v sobek.Value, to *float64) error {
	switch n := v.Export().(type) {
	case int64:
		*to = float64(n)
	case float64:
		*to = n
	default:
		return fmt.Errorf("got %s, want a number", show(v))
	}
	return nil
}

func toBool(v sobek.Value, to *bool) error {
	b, ok := v.Export().(bool)
	if !ok {
		return fmt.Errorf("got %s, want true or false", show(v))
	}
	*to = b
	return nil
}

func toText[T ~string](v sobek.Value, to *T) error {
	s, ok := v.Export().(string)
	if !ok {
		return fmt.Errorf("got %s, want a text", show(v))
	}
	*to = T(s)
	return nil
}

// toDuration reads a text such as '60s', or a number of milliseconds.
func toDuration(v sobek.Value, to *time.Duration) error {
	var d time.Duration
	var err error
	switch n := v.Export().(type) {
	case int64, float64:
		d, err = script.ParseDuration(v.String())
	case string:
		d, err = script.ParseDuration(n)
	default:
		err = errors.New("no text and no number")
	}
	if err != nil {
		return fmt.Errorf("got %s, want a duration such as '60s' or a number of milliseconds", show(v))
	}
	*to = d
	return nil
}
