package plans

// Plan is one experiment.
type Plan struct {
	Version     int      `yaml:"version" jsonschema:"required,enum=1,description=The version of the plan format."`
	Name        string   `yaml:"name" jsonschema:"required,pattern=^[a-z0-9][a-z0-9-]*$,description=A short name: lower-case letters and digits and dashes. The run folder carries it."`
	Description string   `yaml:"description" jsonschema:"description=One sentence for people: what the experiment shows."`
	Seed        uint64   `yaml:"seed" jsonschema:"description=The seed of every random decision. 0 or absent draws one and records it."`
	Target      Target   `yaml:"target" jsonschema:"required"`
	Load        Load     `yaml:"load" jsonschema:"required"`
	Timeline    []Step   `yaml:"timeline" jsonschema:"description=Faults and actions in any order; the runner sorts them by their start."`
	Expect      []Expect `yaml:"expect" jsonschema:"description=What must hold; each is a line of the verdict."`
	Guards      Guards   `yaml:"guards"`
}

// Target names the system under test.
type Target struct {
	Kind string `yaml:"kind" jsonschema:"required,description=The kind of target: see metachaos list targets."`
	With Raw    `yaml:"with" jsonschema:"description=The target's own configuration."`
}

// Load names the script that generates the load.
type Load struct {
	Script string            `yaml:"script" jsonschema:"required,description=Path of the k6 script relative to the plan file."`
	Env    map[string]string `yaml:"env" jsonschema:"description=Variables for the script's __ENV."`
	// MinOperations must be done before the first fault starts; fewer make the
	// run inconclusive.
	MinOperations int `yaml:"min_operations" jsonschema:"minimum=0,default=100,description=Operations that must be done before the first step. Fewer make the run inconclusive."`
}

// DefaultMinOperations is the minimal load of a plan that names none.
const DefaultMinOperations = 100

// Step is one fault or action of the timeline.
type Step struct {
	ID     string   `yaml:"id" jsonschema:"required,pattern=^[a-z0-9][a-z0-9-]*$,description=Names the step in windows and reports."`
	At     Duration `yaml:"at" jsonschema:"required,description=When it starts after the load has started."`
	For    Duration `yaml:"for" jsonschema:"description=How long a fault lasts. Actions have none."`
	Fault  string   `yaml:"fault" jsonschema:"description=The fault: see metachaos list faults. A step names a fault or an action."`
	Action string   `yaml:"action" jsonschema:"description=The action. A step names a fault or an action."`
	On     On       `yaml:"on" jsonschema:"description=Which nodes it strikes. An empty selector matches every node."`
	With   Raw      `yaml:"with" jsonschema:"description=The configuration of the fault or action."`

	// Position of the step in the plan, for errors about it.
	Position Position `yaml:"-"`
}

// What returns the name of the fault or action.
func (s Step) What() string {
	if s.Fault != "" {
		return s.Fault
	}
	return s.Action
}

// On selects nodes by their place in the topology. Empty fields match any.
type On struct {
	Node  string `yaml:"node" jsonschema:"description=The id of one node."`
	Shard string `yaml:"shard" jsonschema:"description=The nodes of one shard."`
	Role  string `yaml:"role" jsonschema:"enum=control,enum=primary,enum=secondary,enum=router"`
	Index int    `yaml:"index" jsonschema:"minimum=0,description=Counts from 1 among the nodes of one role in one shard. 0 matches any."`
}

// Expect is one expectation: a metric over a window and a condition.
type Expect struct {
	Metric string `yaml:"metric" jsonschema:"required,description=The metric: see metachaos list metrics."`
	Window string `yaml:"window" jsonschema:"default=whole,description=whole or baseline or during ID or after ID."`
	Is     string `yaml:"is" jsonschema:"required,description=For example value==0 or ratio_to_baseline>0.9"`

	// Position of the expectation in the plan, for errors about it.
	Position Position `yaml:"-"`
}

// Guards bound what a run may do.
type Guards struct {
	MaxConcurrent int      `yaml:"max_concurrent" jsonschema:"minimum=0,default=1,description=How many faults may be active at once."`
	MaxDuration   Duration `yaml:"max_duration" jsonschema:"default=10m,description=No fault lasts longer."`
	AbortIf       []string `yaml:"abort_if" jsonschema:"description=Live conditions that end the run. For example availability.success_rate<0.05 for 30s"`

	// AbortPositions locate the conditions in the plan, index by index.
	AbortPositions []Position `yaml:"-"`
}
