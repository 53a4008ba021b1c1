package script

import (
	"fmt"

	"github.com/metachaos/metachaos/load"
)

// scenariosOfShare returns what this process makes of the scenarios.
func (x *Execution) scenariosOfShare() []load.Scenario {
	var all []load.Scenario
	for _, s := range x.program.options.Scenarios {
		part, some := s.Part(x.program.options.Share)
		if !some {
			x.program.cfg.Logger.Warn(fmt.Sprintf("scenario %s has nothing to do in this execution segment", s.Name))
			continue
		}
		all = append(all, part)
	}
	return all
}

// idInTest numbers the VUs of all processes that make the load together.
func (v *vm) idInTest() int64 {
	if v.id == 0 {
		return 0
	}
	return int64(v.program.options.Share.Number(uint64(v.id-1))) + 1
}
