package script

import "maps"

// builtin is a module of this package: it sees the whole of the VU.
type builtin func(v *vm) Exports

var _ Module = builtin(nil)

// Exports makes the exports for one VU.
func (b builtin) Exports(h Host) Exports { return b(h.(*vm)) }

// modulesOf lists what scripts can import: k6's own modules and those of the
// caller, which win.
func modulesOf(extra map[string]Module) map[string]Module {
	all := map[string]Module{
		"k6":           builtin(k6Module),
		"k6/metrics":   builtin(metricsModule),
		"k6/execution": builtin(executionModule),
		"k6/data":      builtin(dataModule),
		"k6/timers":    builtin(timersModule),
		"k6/encoding":  builtin(encodingModule),
		"k6/crypto":    builtin(cryptoModule),
	}
	maps.Copy(all, extra)
	return all
}
