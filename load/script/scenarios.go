package script

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/metachaos/metachaos/internal/suggest"
	"github.com/metachaos/metachaos/load"
)

// scenarioFields are all settings that a scenario may have. Nil is not set.
type scenarioFields struct {
	Executor     string            `json:"executor"`
	StartTime    *Duration         `json:"startTime,omitempty"`
	GracefulStop *Duration         `json:"gracefulStop,omitempty"`
	Exec         string            `json:"exec,omitempty"`
	Env          map[string]string `json:"env,omitempty"`
	Tags         map[string]string `json:"tags,omitempty"`
	Options      json.RawMessage   `json:"options,omitempty"` // of browsers

	VUs              *int64        `json:"vus,omitempty"`
	Iterations       *int64        `json:"iterations,omitempty"`
	Duration         *Duration     `json:"duration,omitempty"`
	MaxDuration      *Duration     `json:"maxDuration,omitempty"`
	StartVUs         *int64        `json:"startVUs,omitempty"`
	Stages           []stageFields `json:"stages,omitempty"`
	GracefulRampDown *Duration     `json:"gracefulRampDown,omitempty"`
	Rate             *int64        `json:"rate,omitempty"`
	TimeUnit         *Duration     `json:"timeUnit,omitempty"`
	PreAllocatedVUs  *int64        `json:"preAllocatedVUs,omitempty"`
	MaxVUs           *int64        `json:"maxVUs,omitempty"`
	StartRate        *int64        `json:"startRate,omitempty"`
}

type stageFields struct {
	Duration Duration `json:"duration"`
	Target   *int64   `json:"target"`
}

const defaultGrace = 30 * time.Second

var (
	commonFields   = []string{"executor", "startTime", "gracefulStop", "exec", "env", "tags", "options"}
	executorFields = map[string][]string{
		"constant-vus":          {"vus", "duration"},
		"ramping-vus":           {"startVUs", "stages", "gracefulRampDown"},
		"shared-iterations":     {"vus", "iterations", "maxDuration"},
		"per-vu-iterations":     {"vus", "iterations", "maxDuration"},
		"constant-arrival-rate": {"rate", "timeUnit", "duration", "preAllocatedVUs", "maxVUs"},
		"ramping-arrival-rate":  {"startRate", "timeUnit", "stages", "preAllocatedVUs", "maxVUs"},
	}
	scenarioName = regexp.MustCompile(`^[0-9A-Za-z_-]+$`)
)

// scenarioLayer returns the scenarios in JSON, by name, made from shortcuts
// when there are none.
func scenarioLayer(all Layer) (map[string]json.RawMessage, error) {
	if all.has("scenarios") {
		var scenarios map[string]json.RawMessage
		err := decodeJSON("options.scenarios", all["scenarios"], &scenarios)
		return scenarios, err
	}
	for _, shortcut := range []struct {
		name string
		into any
	}{{"vus", new(int64)}, {"iterations", new(int64)}, {"duration", new(Duration)}, {"stages", new([]stageFields)}} {
		if all.has(shortcut.name) { // so that an error names the option as it was written
			if err := decodeJSON("options."+shortcut.name, all[shortcut.name], shortcut.into); err != nil {
				return nil, err
			}
		}
	}
	fields := Layer{}
	use := func(names ...string) {
		for _, pair := range names {
			from, to, renamed := strings.Cut(pair, ">")
			if !renamed {
				to = from
			}
			if all.has(from) {
				fields[to] = all[from]
			}
		}
	}
	executor := "per-vu-iterations"
	switch {
	case all.has("iterations"):
		executor = "shared-iterations"
		use("vus", "iterations", "duration>maxDuration")
	case all.has("duration"):
		executor = "constant-vus"
		use("vus", "duration")
	case all.has("stages"):
		executor = "ramping-vus"
		use("vus>startVUs", "stages")
	case all.has("vus"): // as many iterations as VUs
		executor = "shared-iterations"
		use("vus", "vus>iterations")
	}
	fields["executor"], _ = json.Marshal(executor) // a string always encodes
	raw, err := json.Marshal(fields)
	return map[string]json.RawMessage{"default": raw}, err
}

func decodeScenarios(raw map[string]json.RawMessage) ([]Scenario, error) {
	var all []Scenario
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		path := "options.scenarios." + name
		if !scenarioName.MatchString(name) {
			return nil, fmt.Errorf("options.scenarios: the name %q: want letters, digits, - and _ only", name)
		}
		f, err := decodeScenario(path, raw[name])
		if err != nil {
			return nil, err
		}
		s := f.scenario(name)
		if err := s.Validate(); err != nil {
			return nil, fmt.Errorf("%s.%w", path, err)
		}
		all = append(all, s)
	}
	return all, nil
}

func decodeScenario(path string, raw json.RawMessage) (f scenarioFields, err error) {
	var keys map[string]json.RawMessage
	if err := decodeJSON(path, raw, &keys); err != nil {
		return f, err
	}
	if err := json.Unmarshal(keys["executor"], &f.Executor); err != nil || executorFields[f.Executor] == nil {
		names := slices.Sorted(maps.Keys(executorFields))
		return f, fmt.Errorf("%s.executor: want one of %s, got %s", path, strings.Join(names, ", "), orNothing(keys["executor"]))
	}
	known := slices.Concat(commonFields, executorFields[f.Executor])
	for key := range keys {
		if !slices.Contains(known, key) {
			return f, fmt.Errorf("%s: %s has no field %q (%s)", path, f.Executor, key, suggest.Name(key, known))
		}
	}
	if err := decodeJSON(path, raw, &f); err != nil {
		return f, err
	}
	for i, s := range f.Stages {
		if s.Target == nil {
			return f, fmt.Errorf("%s.stages[%d].target: want a number, got nothing", path, i)
		}
	}
	if strings.HasSuffix(f.Executor, "arrival-rate") && f.PreAllocatedVUs == nil {
		return f, fmt.Errorf("%s.preAllocatedVUs: want the number of VUs to have ready, got nothing", path)
	}
	return f, nil
}

func orNothing(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "nothing"
	}
	return string(raw)
}

// or returns the value or, when it is not set, the default.
func or[T any](v *T, otherwise T) T {
	if v == nil {
		return otherwise
	}
	return *v
}

func (f scenarioFields) scenario(name string) Scenario {
	s := Scenario{Exec: f.Exec, Env: f.Env, Tags: f.Tags}
	if s.Exec == "" {
		s.Exec = "default"
	}
	s.Name = name
	s.StartTime = time.Duration(or(f.StartTime, 0))
	s.GracefulStop = time.Duration(or(f.GracefulStop, Duration(defaultGrace)))
	span := time.Duration(or(f.Duration, 0))
	limit := time.Duration(or(f.MaxDuration, Duration(10*time.Minute)))
	unit := time.Duration(or(f.TimeUnit, Duration(time.Second)))
	vus, pre := int(or(f.VUs, 1)), int(or(f.PreAllocatedVUs, 0))
	most := int(or(f.MaxVUs, int64(pre)))
	var stages []load.Stage
	for _, st := range f.Stages {
		stages = append(stages, load.Stage{Duration: time.Duration(st.Duration), Target: *st.Target})
	}
	switch f.Executor {
	case "constant-vus":
		s.Executor = load.ConstantVUs{Count: vus, For: span}
	case "ramping-vus":
		s.Executor = load.RampingVUs{Start: or(f.StartVUs, 1), Stages: stages, GracefulRampDown: time.Duration(or(f.GracefulRampDown, Duration(defaultGrace)))}
	case "shared-iterations":
		s.Executor = load.SharedIterations{Count: vus, Iterations: or(f.Iterations, 1), Max: limit}
	case "per-vu-iterations":
		s.Executor = load.PerVUIterations{Count: vus, Iterations: or(f.Iterations, 1), Max: limit}
	case "constant-arrival-rate":
		s.Executor = load.ConstantArrivalRate{Rate: or(f.Rate, 0), Unit: unit, For: span, PreAllocatedVUs: pre, MaxVUs: most}
	case "ramping-arrival-rate":
		s.Executor = load.RampingArrivalRate{StartRate: or(f.StartRate, 0), Unit: unit, Stages: stages, PreAllocatedVUs: pre, MaxVUs: most}
	}
	return s
}

// fields is the inverse of scenario, with every default filled in.
func (s Scenario) fields() scenarioFields {
	duration := func(d time.Duration) *Duration { return (*Duration)(&d) }
	number := func(n int) *int64 { v := int64(n); return &v }
	stages := func(all []load.Stage) (out []stageFields) {
		for _, st := range all {
			out = append(out, stageFields{Duration(st.Duration), &st.Target})
		}
		return out
	}
	f := scenarioFields{Executor: s.Executor.Name(), StartTime: duration(s.StartTime), GracefulStop: duration(s.GracefulStop),
		Exec: s.Exec, Env: s.Env, Tags: s.Tags}
	switch e := s.Executor.(type) {
	case load.ConstantVUs:
		f.VUs, f.Duration = number(e.Count), duration(e.For)
	case load.RampingVUs:
		f.StartVUs, f.Stages, f.GracefulRampDown = &e.Start, stages(e.Stages), duration(e.GracefulRampDown)
	case load.SharedIterations:
		f.VUs, f.Iterations, f.MaxDuration = number(e.Count), &e.Iterations, duration(e.Max)
	case load.PerVUIterations:
		f.VUs, f.Iterations, f.MaxDuration = number(e.Count), &e.Iterations, duration(e.Max)
	case load.ConstantArrivalRate:
		f.Rate, f.TimeUnit, f.Duration = &e.Rate, duration(e.Unit), duration(e.For)
		f.PreAllocatedVUs, f.MaxVUs = number(e.PreAllocatedVUs), number(e.MaxVUs)
	case load.RampingArrivalRate:
		f.StartRate, f.TimeUnit, f.Stages = &e.StartRate, duration(e.Unit), stages(e.Stages)
		f.PreAllocatedVUs, f.MaxVUs = number(e.PreAllocatedVUs), number(e.MaxVUs)
	}
	return f
}

// decodeJSON decodes and says, of what does not fit, where it stands and what
// was wanted.
func decodeJSON(path string, raw json.RawMessage, into any) error {
	err := json.Unmarshal(raw, into)
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		if wrong.Field != "" {
			path += "." + wrong.Field
		}
		return fmt.Errorf("%s: want %s, got %s", path, typeName(wrong.Type.Kind().String()), wrong.Value)
	}
	return fmt.Errorf("%s: %w", path, err)
}

func typeName(kind string) string {
	switch kind {
	case "int64", "int":
		return "an integer"
	case "bool":
		return "true or false"
	case "slice":
		return "an array"
	case "map", "struct":
		return "an object"
	}
	return "a " + kind
}
