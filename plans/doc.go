// Package plans reads plan files: the YAML that says which target an
// experiment starts, which script loads it, which faults strike when, and what
// is expected of it.
//
// The package is a leaf. It knows faults and targets only as names with raw
// configuration ([Raw]), which their owners decode strictly. Every error
// carries file, line and column, what was expected, and the nearest known
// name.
package plans
