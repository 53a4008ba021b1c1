package cli

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/metachaos/metachaos/chaos"
)

// recoverLimit bounds how long taking back what a killed run left may take.
const recoverLimit = 60 * time.Second

func newDoctor(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Say what works on this machine, and take back what a killed run left",
		Long: `doctor reads the journal. What a run that was killed left behind, it takes back:
faults are reverted and probed, processes and folders of its target removed.
Then it says which fault mechanisms work on this machine.

It exits with 121 when something could not be taken back.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			j, err := openJournal()
			if err != nil {
				return err
			}
			defer removeEmptyState()
			ctx, cancel := context.WithTimeout(c.Context(), recoverLimit)
			defer cancel()
			found := chaos.Recover(ctx, j, builtinFaults(nil))
			report := doctorReport{Journal: j.Dir(), Mechanisms: mechanisms()}
			for _, r := range found {
				report.Recovered = append(report.Recovered, recovered{What: r.What, Undone: r.Reversal.Undone,
					Evidence: r.Reversal.Evidence, HowTo: r.Reversal.HowTo})
			}
			if asJSON {
				err = a.printJSON(report)
			} else {
				err = a.printDoctor(report, found)
			}
			if err == nil && !allClean(found) {
				err = &silentError{exitNotReverted}
			}
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

type doctorReport struct {
	Journal    string      `json:"journal"`
	Recovered  []recovered `json:"recovered"`
	Mechanisms []mechanism `json:"mechanisms"`
}

type recovered struct {
	What     string       `json:"what"`
	Undone   chaos.Undone `json:"undone"`
	Evidence string       `json:"evidence"`
	HowTo    string       `json:"how_to,omitempty"`
}

type mechanism struct {
	Name   string `json:"name"`
	Works  bool   `json:"works"`
	Detail string `json:"detail"`
}

func allClean(found []chaos.Recovery) bool {
	for _, r := range found {
		if !r.Clean() {
			return false
		}
	}
	return true
}

func (a *app) printDoctor(report doctorReport, found []chaos.Recovery) error {
	if len(found) == 0 {
		fmt.Fprintf(a.Out, "journal: empty (%s)\n", report.Journal)
	} else {
		fmt.Fprintf(a.Out, "journal: found what a killed run left (%s)\n", report.Journal)
		for _, r := range found {
			fmt.Fprintln(a.Out, "  "+r.String())
		}
	}
	for _, m := range report.Mechanisms {
		works := "works"
		if !m.Works {
			works = "not here"
		}
		if _, err := fmt.Fprintf(a.Out, "%-22s %-9s %s\n", m.Name, works, m.Detail); err != nil {
			return err
		}
	}
	return nil
}

// mechanisms probes what the built-in faults and the identity checks rest on.
func mechanisms() []mechanism {
	var out []mechanism
	add := func(name string, works bool, detail string) {
		out = append(out, mechanism{Name: name, Works: works, Detail: detail})
	}
	add("platform", runtime.GOOS == "linux", runtime.GOOS+"/"+runtime.GOARCH+"; processes are identified through /proc")
	_, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	add("boot id", err == nil, "tells a reused pid after a reboot from the process it was")
	_, err = os.Stat("/proc/self/stat")
	add("process start time", err == nil, "tells a reused pid from the process it was")
	add("signals", runtime.GOOS != "windows", "SIGSTOP and SIGCONT of processes that the target declared")
	return out
}
