package report

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/metachaos/metachaos/results/analysis"
)

// JSON writes the verdict as verdict.json keeps it: the same verdict gives
// the same bytes.
func JSON(w io.Writer, v analysis.Verdict) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode verdict: %w", err)
	}
	if _, err := w.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("write verdict: %w", err)
	}
	return nil
}
