package metacache

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/grafana/sobek"

	"github.com/metachaos/metachaos/internal/suggest"
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
func protections(name string) (client.Policy, error) {
	switch name {
	case "recommended":
		return client.Recommended(), nil
	case "none":
		return client.Policy{TTL: client.Recommended().TTL, MaxAttempts: client.Recommended().MaxAttempts, MaxRedirects: -1}, nil
	}
	return client.Policy{}, fmt.Errorf("protections is %q, want none or recommended", name)
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
// is applied first, wherever it stands, and single switches change it.
func parseOptions(rt *sobek.Runtime, v sobek.Value) (options, error) {
	o := defaultOptions()
	if sobek.IsUndefined(v) || sobek.IsNull(v) {
		return o, nil
	}
	object, ok := v.(*sobek.Object)
	if !ok {
		return o, fmt.Errorf("the options are %q, want an object such as { clients: 100, ttl: '60s' }", v.String())
	}
	if p := object.Get("protections"); p != nil && !sobek.IsUndefined(p) {
		var err error
		if o.policy, err = protections(p.String()); err != nil {
			return o, err
		}
	}
	for _, key := range object.Keys() {
		value := object.Get(key)
		if key == "protections" || sobek.IsUndefined(value) || sobek.IsNull(value) {
			continue
		}
		set, ok := setters[key]
		if !ok {
			return o, fmt.Errorf("unknown option %q (%s)", key, suggest.Name(key, slices.Sorted(maps.Keys(setters))))
		}
		if err := set(&o, value); err != nil {
			return o, fmt.Errorf("%s: %w", key, err)
		}
	}
	return o, o.config().Validate()
}

func toInt(v sobek.Value, to *int) error {
	n, ok := v.Export().(int64)
	if !ok {
		return fmt.Errorf("got %s, want a whole number", v)
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
		return fmt.Errorf("got %s, want a number", v)
	}
	return nil
}

func toBool(v sobek.Value, to *bool) error {
	b, ok := v.Export().(bool)
	if !ok {
		return fmt.Errorf("got %s, want true or false", v)
	}
	*to = b
	return nil
}

func toText[T ~string](v sobek.Value, to *T) error {
	s, ok := v.Export().(string)
	if !ok {
		return fmt.Errorf("got %s, want a text", v)
	}
	*to = T(s)
	return nil
}

// toDuration reads a text such as '60s', or a number of milliseconds.
func toDuration(v sobek.Value, to *time.Duration) error {
	switch n := v.Export().(type) {
	case int64:
		*to = time.Duration(n) * time.Millisecond
		return nil
	case float64:
		*to = time.Duration(n * float64(time.Millisecond))
		return nil
	case string:
		d, err := time.ParseDuration(n)
		if err == nil {
			*to = d
			return nil
		}
	}
	return fmt.Errorf("got %q, want a duration such as '60s' or a number of milliseconds", v.String())
}
