package analysis

import (
	"fmt"

	"github.com/metachaos/metachaos/results"
	"github.com/metachaos/metachaos/targets"
)

// duplicateTally looks at scans that were done; one that was not may lack
// documents for other reasons.
//
//	duplicates.rate         = documents returned again / documents returned
//	duplicates.missing_rate = documents not returned / documents that exist
//
// where the documents that exist are those returned, each once, and those
// missing.
type duplicateTally struct {
	scans, documents, again, absent uint64

	duplicated, lacking Evidence
}

func (t *duplicateTally) event(line int, e *targets.Event) {
	if e.Verb != targets.EventScan || e.Outcome != targets.Done {
		return
	}
	t.scans++
	t.documents += uint64(max(0, e.Documents))
	if e.Duplicates > 0 {
		t.again += uint64(e.Duplicates)
		t.duplicated.add(results.EventsFile, line, e.Start, e.End)
	}
	if e.Missing > 0 {
		t.absent += uint64(e.Missing)
		t.lacking.add(results.EventsFile, line, e.Start, e.End)
	}
}

func (t *duplicateTally) report(out figures, _ *scene) {
	out["duplicates.rate"] = t.rate(t.again, t.documents, "returned twice", t.duplicated)
	out["duplicates.missing_rate"] = t.rate(t.absent, t.documents-min(t.again, t.documents)+t.absent, "missing", t.lacking)
}

func (t *duplicateTally) rate(n, total uint64, what string, e Evidence) figure {
	if t.scans == 0 {
		return unknown("no scan was done in the window")
	}
	f := share(n, total, "documents of scans")
	if f.known() {
		f.detail = fmt.Sprintf("%d of %d documents %s, in %d of %d scans", n, total, what, e.Count, t.scans)
	}
	return f.with(e)
}
