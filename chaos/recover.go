package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/metachaos/metachaos/internal/suggest"
	"github.com/metachaos/metachaos/targets"
)

// Recovery is what became of one thing that a dead controller had left, or of
// a journal file that cannot be read.
type Recovery struct {
	// What says what was left, for example "injection freeze (primary.freeze)".
	What string
	// Entry is the journal entry; zero for a file that cannot be read.
	Entry    Entry
	Reversal Reversal
}

// Clean reports whether nothing is left.
func (r Recovery) Clean() bool { return r.Reversal.Undone == Reverted }

// String is one line for people.
func (r Recovery) String() string {
	s := fmt.Sprintf("%s: %s: %s", r.What, r.Reversal.Undone, r.Reversal.Evidence)
	if r.Reversal.HowTo != "" {
		s += "; to undo it: " + r.Reversal.HowTo
	}
	if r.Entry.RunDir != "" {
		s += " (run folder " + r.Entry.RunDir + ")"
	}
	return s
}

// exitGrace is how long processes of a dead controller may take to exit by
// themselves, as they do when they notice that their parent is gone.
const exitGrace = 3 * time.Second

// Recover takes back whatever controllers that are dead by now left in the
// journal: first every injection, all at once, then the processes and folders
// of started targets. An entry leaves the journal only when it is clean;
// entries of living controllers are not touched. The faults need no live
// target. It returns one Recovery per thing found, in the journal's order.
func Recover(ctx context.Context, j *Journal, faults map[string]Fault) []Recovery {
	return recovery{journal: j, faults: faults, grace: exitGrace}.run(ctx)
}

type recovery struct {
	journal *Journal
	faults  map[string]Fault
	grace   time.Duration
}

func (r recovery) run(ctx context.Context) []Recovery {
	entries, damaged, err := r.journal.Entries()
	if err != nil {
		return []Recovery{{What: "journal " + r.journal.dir, Reversal: Reversal{Undone: RevertUnknown,
			Evidence: err.Error(), HowTo: "make the folder readable and recover again"}}}
	}
	var injections, owned []Entry
	for _, e := range entries {
		switch {
		case e.Controller.Alive():
		case e.Injection != nil:
			injections = append(injections, e)
		default:
			owned = append(owned, e)
		}
	}
	// A process that an injection stopped cannot exit by itself, so injections
	// come first.
	out := r.each(injections, func(e Entry) Recovery { return r.injection(ctx, e) })
	out = append(out, r.each(owned, func(e Entry) Recovery { return r.target(ctx, e) })...)
	for _, d := range damaged {
		out = append(out, damagedRecovery(d))
	}
	r.journal.sweepTemps()
	return out
}

// each recovers all entries side by side, so that a slow one holds up none.
func (r recovery) each(entries []Entry, one func(Entry) Recovery) []Recovery {
	out := make([]Recovery, len(entries))
	var wg sync.WaitGroup
	for i, e := range entries {
		wg.Go(func() {
			out[i] = one(e)
			if !out[i].Clean() {
				return
			}
			if err := r.journal.Remove(e); err != nil {
				out[i].Reversal = Reversal{Undone: RevertUnknown, HowTo: "delete the journal entry by hand",
					Evidence: out[i].Reversal.Evidence + ", but " + err.Error()}
			}
		})
	}
	wg.Wait()
	return out
}

func (r recovery) injection(ctx context.Context, e Entry) Recovery {
	h := e.Injection.Handle
	out := Recovery{What: fmt.Sprintf("injection %s (%s)", h.ID, h.Fault), Entry: e}
	fault, ok := r.faults[h.Fault]
	if !ok {
		out.Reversal = withHowTo(Reversal{Undone: RevertUnknown, Evidence: fmt.Sprintf(
			"fault %q is not known here: %s", h.Fault, suggest.Name(h.Fault, slices.Sorted(maps.Keys(r.faults))))}, h)
		return out
	}
	out.Reversal = withHowTo(reverse(ctx, h, fault.Recover), h)
	return out
}

func (r recovery) target(ctx context.Context, e Entry) Recovery {
	out := Recovery{What: "target " + e.Owned.ID, Entry: e}
	var found, left []string
	for _, p := range r.awaitExit(ctx, e.Owned.Processes) {
		label := fmt.Sprintf("process %d (%s)", p.PID, p.Node)
		if err := r.kill(ctx, p); err != nil {
			left = append(left, fmt.Sprintf("%s: %v", label, err))
			continue
		}
		found = append(found, label+" killed")
	}
	if len(left) == 0 && e.Owned.Folder != "" {
		switch removed, err := removeOwned(e.Owned.Folder); {
		case err != nil:
			left = append(left, err.Error())
		case removed:
			found = append(found, "folder "+e.Owned.Folder+" removed")
		}
	}
	if len(left) > 0 {
		out.Reversal = Reversal{Undone: NotReverted, Evidence: strings.Join(append(left, found...), ", "),
			HowTo: "end the processes and remove the folder by hand"}
		return out
	}
	if len(found) == 0 {
		found = []string{"nothing was left"}
	}
	out.Reversal = Reversal{Undone: Reverted, Evidence: strings.Join(found, ", ")}
	return out
}

// awaitExit returns the processes that are still there after the grace.
func (r recovery) awaitExit(ctx context.Context, all []targets.Process) []targets.Process {
	alive := func() []targets.Process {
		return slices.DeleteFunc(slices.Clone(all), func(p targets.Process) bool { return !p.Alive() })
	}
	left := alive()
	for end := time.Now().Add(r.grace); len(left) > 0 && time.Now().Before(end); left = alive() {
		if !sleep(ctx, 50*time.Millisecond) {
			break
		}
	}
	return left
}

func (r recovery) kill(ctx context.Context, p targets.Process) error {
	err := Signal(p, syscall.SIGKILL)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	if err != nil {
		return err
	}
	for end := time.Now().Add(r.grace); p.Alive(); {
		if time.Now().After(end) || !sleep(ctx, 20*time.Millisecond) {
			return errors.New("killed, but still there")
		}
	}
	return nil
}

// removeOwned removes a folder that a target made, and nothing else: not what
// lacks our mark, and not through a symbolic link.
func removeOwned(dir string) (removed bool, err error) {
	info, err := os.Lstat(dir)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("remove folder: %w", err)
	}
	clean := filepath.Clean(dir)
	ours := filepath.Dir(clean) == filepath.Clean(os.TempDir()) && strings.HasPrefix(filepath.Base(clean), "metachaos-")
	if _, err := os.Lstat(filepath.Join(clean, OwnedMarker)); err == nil {
		ours = true
	}
	if !info.IsDir() || !filepath.IsAbs(clean) || !ours {
		return false, fmt.Errorf("folder %s is not removed: it carries no mark of ours (a file %s)", dir, OwnedMarker)
	}
	if err := os.RemoveAll(clean); err != nil {
		return false, fmt.Errorf("remove folder: %w", err)
	}
	return true, nil
}

func damagedRecovery(d Damaged) Recovery {
	rev := Reversal{Undone: RevertUnknown, Evidence: d.Err.Error()}
	if d.MovedTo != "" {
		rev.HowTo = "read " + d.MovedTo + ", undo by hand what it names, and delete it"
	} else {
		rev.HowTo = "the file could not be moved aside: read it, undo by hand what it names, and delete it"
	}
	return Recovery{What: "journal file " + d.Path, Reversal: rev}
}
