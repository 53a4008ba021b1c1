package script

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/grafana/sobek"

	"github.com/metachaos/metachaos/results"
)

var metricName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]{1,128}$`)

func metricsModule(v *vm) Exports {
	return Exports{Named: map[string]any{
		"Counter": v.metricClass("Counter", results.Counter), "Gauge": v.metricClass("Gauge", results.Gauge),
		"Rate": v.metricClass("Rate", results.Rate), "Trend": v.metricClass("Trend", results.Trend),
	}}
}

// metricClass returns the constructor of metrics of a kind.
func (v *vm) metricClass(class string, kind results.MetricKind) func(sobek.ConstructorCall) *sobek.Object {
	return func(call sobek.ConstructorCall) *sobek.Object {
		name := call.Argument(0).String()
		if !v.inInit {
			v.throw("new %s(%q): metrics can be made in init code only", class, name)
		}
		if !metricName.MatchString(name) {
			v.throw("new %s(%q): want 2 to 129 letters, digits and underscores, not starting with a digit", class, name)
		}
		contains := results.ContainsDefault
		if call.Argument(1).ToBoolean() {
			contains = results.ContainsTime
		}
		metric, err := v.Metric(name, kind, contains)
		if err != nil {
			panic(v.rt.NewGoError(err))
		}
		// setting plain properties of a fresh object cannot fail
		_ = call.This.Set("name", name)
		_ = call.This.Set("add", v.adder(metric))
		return nil
	}
}

func (v *vm) adder(metric *results.Metric) native {
	return func(call sobek.FunctionCall) sobek.Value {
		if v.inInit {
			v.throw("metric %s: samples cannot be added in init code", metric.Name)
		}
		value, ok := number(call.Argument(0))
		if !ok {
			v.program.cfg.Logger.Warn("metric "+metric.Name+": want a number, got "+show(call.Argument(0))+"; the sample is left out", "source", "metrics")
			return v.rt.ToValue(false)
		}
		tags := v.tags
		if extra := call.Argument(1); !sobek.IsUndefined(extra) && !sobek.IsNull(extra) {
			tags = v.tagsWith("metric "+metric.Name, extra)
		}
		v.sample(metric, value, tags)
		return v.rt.ToValue(true)
	}
}

// number returns what a script means as a number: numbers, booleans and
// numeric text.
func number(value sobek.Value) (float64, bool) {
	switch exported := value.Export().(type) {
	case int64:
		return float64(exported), true
	case float64:
		return exported, !math.IsNaN(exported)
	case bool:
		return one(exported), true
	case string:
		f, err := strconv.ParseFloat(strings.TrimSpace(exported), 64)
		return f, err == nil && !math.IsNaN(f)
	}
	return 0, false
}

// tagsWith returns the current tags with those of an object of the script.
func (v *vm) tagsWith(where string, extra sobek.Value) *results.Tags {
	o, ok := extra.(*sobek.Object)
	if !ok {
		v.throwType("%s: want an object of tags, got %s", where, show(extra))
	}
	keys := o.Keys()
	if len(keys) == 1 {
		return v.with(keys[0], v.tagValue(where, keys[0], o.Get(keys[0])))
	}
	all := v.tags.Map()
	for _, key := range keys {
		all[key] = v.tagValue(where, key, o.Get(key))
	}
	return v.registry.Tags(all)
}

// tagValue returns the text of a tag: texts, numbers and booleans have one.
func (v *vm) tagValue(where, key string, value sobek.Value) string {
	if _, isObject := value.(*sobek.Object); isObject || sobek.IsUndefined(value) || sobek.IsNull(value) {
		v.throwType("%s: tag %q: want text, a number or a boolean, got %s", where, key, show(value))
	}
	return value.String()
}
