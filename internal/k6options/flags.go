package k6options

import (
	"fmt"
	"slices"

	"github.com/spf13/pflag"
)

// Set is the options on one command line.
type Set struct {
	bound []bound
}

// bound is an option with what its flag was given.
type bound struct {
	option
	value *flagValue
}

// flagValue collects what a flag is given.
type flagValue struct {
	kind  kind
	given bool
	value any
}

var _ pflag.Value = (*flagValue)(nil)

// Set reads one occurrence of the flag.
func (v *flagValue) Set(text string) error {
	next, err := v.kind.flag(text)
	if err != nil {
		return err
	}
	if v.given && v.kind.join != nil {
		next = v.kind.join(v.value, next)
	}
	v.value, v.given = next, true
	return nil
}

// Type names the kind in usage texts.
func (v *flagValue) Type() string { return v.kind.name }

// String returns what was given; nothing stands for the default.
func (v *flagValue) String() string {
	if !v.given {
		return ""
	}
	return fmt.Sprint(v.value)
}

// Flags registers all flags of k6's run command that mean something here.
func Flags(fs *pflag.FlagSet) *Set {
	s := &Set{}
	for _, o := range append(scriptOptions(), runtimeOptions()...) {
		v := &flagValue{kind: o.kind}
		s.bound = append(s.bound, bound{o, v})
		if o.flag != "" {
			fs.VarPF(v, o.flag, o.short, o.usage).NoOptDefVal = o.kind.alone
		}
	}
	return s
}

// LoadFlags returns the names of the given flags that say how much load there
// is, which a plan leaves to its script.
func (s *Set) LoadFlags() []string {
	var given []string
	for _, b := range s.bound {
		if b.value.given && (b.script == "vus" || slices.Contains(shapes[:], b.script)) {
			given = append(given, b.flag)
		}
	}
	return given
}
