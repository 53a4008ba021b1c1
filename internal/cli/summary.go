package cli

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// writeSummaryFiles writes what handleSummary returned. A file that cannot be
// written is told, and the others are written all the same, as in k6.
func (a *app) writeSummaryFiles(files map[string][]byte, stdout io.Writer) {
	for _, path := range slices.Sorted(maps.Keys(files)) {
		var err error
		switch path {
		case "stdout":
			_, err = stdout.Write(files[path])
		case "stderr":
			_, err = a.Err.Write(files[path])
		default:
			err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, files[path], 0o644))
		}
		if err != nil {
			fmt.Fprintf(a.Err, "metachaos: handleSummary could not write %q: %v\n", path, err)
		}
	}
}
