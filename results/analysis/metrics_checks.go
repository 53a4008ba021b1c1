package analysis

import (
	"strings"

	"github.com/metachaos/metachaos/results"
)

// groupSeparator stands before each name in the path of a group.
const groupSeparator = "::"

// Group is a group of the script with what stands in it. The root has an
// empty name.
type Group struct {
	Name   string   `json:"name"`
	Path   string   `json:"path"` // "" or ::outer::inner
	Groups []*Group `json:"groups"`
	Checks []*Check `json:"checks"`
}

// Check is one named condition and how often it held.
type Check struct {
	Name   string `json:"name"`
	Path   string `json:"path"`
	Passes uint64 `json:"passes"`
	Fails  uint64 `json:"fails"`
}

// checkTree counts checks by group and name, which it reads from the tags of
// their samples.
type checkTree struct {
	root   *Group
	groups map[string]*Group // by path
	checks map[string]*Check // by path
	// known spares the building of paths for tag sets that were seen before.
	known map[*results.Tags]*Check
}

func newCheckTree() *checkTree {
	root := &Group{Groups: []*Group{}, Checks: []*Check{}}
	return &checkTree{root: root, groups: map[string]*Group{"": root}, checks: map[string]*Check{}, known: map[*results.Tags]*Check{}}
}

func (t *checkTree) count(tags *results.Tags, passed bool) {
	check := t.known[tags]
	if check == nil {
		check = t.check(tags)
		if len(t.known) >= maxRemembered {
			clear(t.known)
		}
		t.known[tags] = check
	}
	if passed {
		check.Passes++
	} else {
		check.Fails++
	}
}

func (t *checkTree) check(tags *results.Tags) *Check {
	group := t.group(tags)
	name, _ := tags.Get("check")
	path := group.Path + groupSeparator + name
	check := t.checks[path]
	if check == nil {
		check = &Check{Name: name, Path: path}
		t.checks[path] = check
		group.Checks = append(group.Checks, check)
	}
	return check
}

// group returns the group that the tags name and makes it, with the groups
// around it, when it is new.
func (t *checkTree) group(tags *results.Tags) *Group {
	path, _ := tags.Get("group")
	return t.at(path)
}

func (t *checkTree) at(path string) *Group {
	if g := t.groups[path]; g != nil {
		return g
	}
	outer, name := "", path
	if i := strings.LastIndex(path, groupSeparator); i >= 0 {
		outer, name = path[:i], path[i+len(groupSeparator):]
	}
	g := &Group{Name: name, Path: path, Groups: []*Group{}, Checks: []*Check{}}
	t.groups[path] = g
	parent := t.at(outer)
	parent.Groups = append(parent.Groups, g)
	return g
}

func (g *Group) clone() *Group {
	c := &Group{Name: g.Name, Path: g.Path, Groups: []*Group{}, Checks: []*Check{}}
	for _, inner := range g.Groups {
		c.Groups = append(c.Groups, inner.clone())
	}
	for _, check := range g.Checks {
		k := *check
		c.Checks = append(c.Checks, &k)
	}
	return c
}
