package plans

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/metachaos/metachaos/internal/suggest"
)

var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)

// locate fills in the positions that decoding does not carry, and the default
// values that depend on nothing else.
func locate(file string, body ast.Node, p *Plan) {
	p.Target.With.file = file
	p.Target.With.owner = positionAt(file, body, "target")
	for i, item := range itemsAt(body, "timeline") {
		p.Timeline[i].Position = positionOf(file, item)
		p.Timeline[i].With.file = file
		p.Timeline[i].With.owner = p.Timeline[i].Position
	}
	for i, item := range itemsAt(body, "expect") {
		p.Expect[i].Position = positionOf(file, item)
		if p.Expect[i].Window == "" {
			p.Expect[i].Window = "whole"
		}
	}
	for _, item := range itemsAt(body, "guards", "abort_if") {
		p.Guards.AbortPositions = append(p.Guards.AbortPositions, positionOf(file, item))
	}
	if p.Guards.MaxConcurrent == 0 {
		p.Guards.MaxConcurrent = 1
	}
	if p.Guards.MaxDuration == 0 {
		p.Guards.MaxDuration = Duration(defaultMaxDuration)
	}
}

// valueAt follows keys through mappings and returns nil when one is absent.
func valueAt(node ast.Node, keys ...string) ast.Node {
	for _, key := range keys {
		entries, _ := mappingOf(node)
		i := slices.IndexFunc(entries, func(e *ast.MappingValueNode) bool { return e.Key.GetToken().Value == key })
		if i < 0 {
			return nil
		}
		node = entries[i].Value
	}
	return node
}

func itemsAt(node ast.Node, keys ...string) []ast.Node {
	if seq, ok := valueAt(node, keys...).(*ast.SequenceNode); ok {
		return seq.Values
	}
	return nil
}

// positionAt is the place of the key, or of the document when it is absent.
func positionAt(file string, body ast.Node, key string) Position {
	entries, _ := mappingOf(body)
	for _, e := range entries {
		if e.Key.GetToken().Value == key {
			return positionOf(file, e.Key)
		}
	}
	return positionOf(file, body)
}

// validate checks everything that can be known without faults and targets.
func validate(file string, p *Plan) Errors {
	top := Position{File: file, Line: 1, Column: 1}
	var errs Errors
	bad := func(at Position, hint, format string, args ...any) {
		errs = append(errs, &Error{Position: at, Message: fmt.Sprintf(format, args...), Hint: hint})
	}
	if p.Version != 1 {
		bad(top, "write version: 1", "unsupported plan version %d", p.Version)
	}
	if !namePattern.MatchString(p.Name) {
		bad(top, "want lower-case letters, digits and dashes, for example name: lost-pushes", "bad or missing name %q", p.Name)
	}
	if p.Target.Kind == "" {
		bad(p.Target.With.owner, "for example target: {kind: reference}", "target.kind is missing")
	}
	if p.Load.Script == "" {
		bad(top, "for example load: {script: scripts/readwrite.js}", "load.script is missing")
	}
	if p.Load.MinOperations < 0 {
		bad(top, "want 0 or more", "load.min_operations is negative: %d", p.Load.MinOperations)
	}
	ids := validateSteps(p.Timeline, bad)
	for _, e := range p.Expect {
		if e.Metric == "" {
			bad(e.Position, "see metachaos list metrics", "the expectation names no metric")
		}
		if e.Is == "" {
			bad(e.Position, `for example is: "value==0"`, "the expectation has no condition")
		}
		validateWindow(e, ids, bad)
	}
	if p.Guards.MaxConcurrent < 0 {
		bad(top, "want 1 or more", "guards.max_concurrent is negative: %d", p.Guards.MaxConcurrent)
	}
	return errs
}

type report func(at Position, hint, format string, args ...any)

func validateSteps(steps []Step, bad report) (ids []string) {
	for _, s := range steps {
		switch {
		case s.ID == "":
			bad(s.Position, "for example id: freeze", "the step has no id")
		case !namePattern.MatchString(s.ID):
			bad(s.Position, "want lower-case letters, digits and dashes", "bad step id %q", s.ID)
		case slices.Contains(ids, s.ID):
			bad(s.Position, "ids must differ, since windows and reports name them", "step id %q is used twice", s.ID)
		}
		ids = append(ids, s.ID)
		switch {
		case s.Fault == "" && s.Action == "":
			bad(s.Position, "see metachaos list faults", "step %q names neither a fault nor an action", s.ID)
		case s.Fault != "" && s.Action != "":
			bad(s.Position, "split it in two steps", "step %q names both a fault and an action", s.ID)
		case s.Fault != "" && s.For == 0:
			bad(s.Position, "for example for: 20s", "fault %q of step %q does not say how long it lasts", s.Fault, s.ID)
		case s.Action != "" && s.For != 0:
			bad(s.Position, "leave out for", "action %q of step %q happens at once and lasts no time", s.Action, s.ID)
		}
		if roles := []string{"", "control", "primary", "secondary", "router"}; !slices.Contains(roles, s.On.Role) {
			bad(s.Position, suggest.Name(s.On.Role, roles[1:]), "step %q selects the unknown role %q", s.ID, s.On.Role)
		}
		if s.On.Index < 0 {
			bad(s.Position, "indexes count from 1", "step %q selects the negative index %d", s.ID, s.On.Index)
		}
	}
	return ids
}

func validateWindow(e Expect, ids []string, bad report) {
	word, id, hasID := strings.Cut(e.Window, " ")
	switch {
	case !hasID && (word == "whole" || word == "baseline"):
	case hasID && (word == "during" || word == "after"):
		if !slices.Contains(ids, id) {
			bad(e.Position, suggest.Name(id, ids), "window %q names no step of the timeline", e.Window)
		}
	default:
		bad(e.Position, "want whole, baseline, during ID or after ID", "bad window %q", e.Window)
	}
}
