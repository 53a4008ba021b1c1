// Package suggest mends misspelt names in error messages.
package suggest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Name returns a hint for a name that is not known: the nearest known one, or
// all of them when none is near.
func Name(name string, known []string) string {
	if len(known) == 0 {
		return "none is known here"
	}
	distance := func(k string) int { return levenshtein.ComputeDistance(name, k) }
	best := slices.MinFunc(known, func(a, b string) int { return distance(a) - distance(b) })
	if distance(best) <= max(2, len(name)/3) {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return "known: " + strings.Join(known, ", ")
}
