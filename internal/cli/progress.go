package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/metachaos/metachaos/internal/experiment"
)

// progress narrates a run on standard error: as a live view on a terminal, as
// plain lines in a pipe.
type progress struct {
	out   io.Writer
	quiet bool
	begun time.Time

	mu   sync.Mutex // guards the fields below, and the order of lines
	live *tea.Program

	stopTicks chan struct{}
	running   sync.WaitGroup
}

const (
	lineEvery = 5 * time.Second        // between status lines in a pipe
	viewEvery = 250 * time.Millisecond // between frames on a terminal
)

func (a *app) newProgress(quiet bool) *progress {
	return &progress{out: a.Err, quiet: quiet, begun: time.Now(), stopTicks: make(chan struct{})}
}

// line says one thing that happened.
func (p *progress) line(text string) {
	if p.quiet {
		return
	}
	text = fmt.Sprintf("%6.1fs  %s", time.Since(p.begun).Seconds(), text)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.live != nil {
		p.live.Println(text)
		return
	}
	fmt.Fprintln(p.out, text)
}

// start begins to show snapshots.
func (p *progress) start(snapshot func() experiment.Snapshot) {
	if p.quiet {
		return
	}
	if isTerminal(p.out) {
		// Keys are left to the terminal, so that Ctrl-C stays a signal.
		program := tea.NewProgram(view{snapshot: snapshot}, tea.WithOutput(p.out), tea.WithInput(nil), tea.WithoutSignalHandler())
		p.mu.Lock()
		p.live = program
		p.mu.Unlock()
		p.running.Go(func() { _, _ = program.Run() }) // a view that breaks must not break the run
		return
	}
	p.running.Go(func() {
		tick := time.NewTicker(lineEvery)
		defer tick.Stop()
		for {
			select {
			case <-p.stopTicks:
				return
			case <-tick.C:
				p.line(statusLine(snapshot()))
			}
		}
	})
}

// stop ends the view.
func (p *progress) stop() {
	close(p.stopTicks)
	p.mu.Lock()
	live := p.live
	p.live = nil
	p.mu.Unlock()
	if live != nil {
		live.Quit()
	}
	p.running.Wait()
}

func statusLine(s experiment.Snapshot) string {
	return fmt.Sprintf("%s %s: %d VUs, %d iterations, %d ops/s (%d not done, %d refused), %d pulls/s, faults: %s",
		s.Phase, elapsed(s), s.VUs, s.Iterations, s.OperationsPerS, s.FailedPerS, s.RefusalsPerS, s.PullsPerS, activeFaults(s))
}

func elapsed(s experiment.Snapshot) string {
	return fmt.Sprintf("%.0fs/%.0fs", s.Elapsed.Seconds(), s.Expected.Seconds())
}

func activeFaults(s experiment.Snapshot) string {
	if len(s.Active) == 0 {
		return "none"
	}
	var out []string
	for _, f := range s.Active {
		out = append(out, fmt.Sprintf("%s (%s, %s)", f.ID, f.Fault, f.Phase))
	}
	return strings.Join(out, ", ")
}

// view is the live view: a few lines that are drawn anew four times a second.
type view struct {
	snapshot func() experiment.Snapshot
}

type frame time.Time

func nextFrame() tea.Cmd { return tea.Tick(viewEvery, func(t time.Time) tea.Msg { return frame(t) }) }

// Init implements tea.Model.
func (v view) Init() tea.Cmd { return nextFrame() }

// Update implements tea.Model.
func (v view) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	if _, ok := msg.(frame); ok {
		return v, nextFrame()
	}
	return v, nil
}

var (
	faint  = lipgloss.NewStyle().Faint(true)
	strong = lipgloss.NewStyle().Bold(true)
	alarm  = lipgloss.NewStyle().Foreground(lipgloss.Color("1")).Bold(true)
)

// View implements tea.Model.
func (v view) View() tea.View {
	s := v.snapshot()
	mark := func(n uint64) string {
		if n == 0 {
			return "0"
		}
		return alarm.Render(fmt.Sprint(n))
	}
	faults := activeFaults(s)
	if len(s.Active) > 0 {
		faults = alarm.Render(faults)
	}
	rows := []string{
		strong.Render(s.Phase) + " " + bar(s.Elapsed.Seconds(), s.Expected.Seconds()) + " " + elapsed(s),
		faint.Render("load    ") + fmt.Sprintf("%d VUs, %d iterations, %s dropped", s.VUs, s.Iterations, mark(s.Dropped)),
		faint.Render("ops/s   ") + fmt.Sprintf("%d, not done %s, refused %d", s.OperationsPerS, mark(s.FailedPerS), s.RefusalsPerS),
		faint.Render("pulls/s ") + fmt.Sprint(s.PullsPerS),
		faint.Render("faults  ") + faults,
	}
	return tea.NewView(strings.Join(rows, "\n"))
}

// bar draws how much is done over 24 columns.
func bar(done, all float64) string {
	const width = 24
	filled := 0
	if all > 0 {
		filled = int(min(1, done/all) * width)
	}
	return strings.Repeat("█", filled) + strings.Repeat("░", width-filled)
}
