package cli

import (
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/metachaos/metachaos/plans"
	"github.com/metachaos/metachaos/results/analysis"
)

// listing is a table that is also JSON: one object per row.
type listing struct {
	columns []string
	rows    [][]string
}

func newList(a *app) *cobra.Command {
	var asJSON bool
	lists := map[string]func() (listing, error){
		"plans": listPlans, "faults": listFaults, "targets": listTargets, "metrics": listMetrics,
	}
	names := slices.Sorted(maps.Keys(lists))
	c := &cobra.Command{
		Use:       "list " + strings.Join(names, "|"),
		Short:     "List the plans, faults, targets or metrics that there are",
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: names,
		RunE: func(_ *cobra.Command, args []string) error {
			l, err := lists[args[0]]()
			if err != nil {
				return err
			}
			return a.printListing(l, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (a *app) printListing(l listing, asJSON bool) error {
	if asJSON {
		objects := make([]map[string]string, len(l.rows))
		for i, row := range l.rows {
			objects[i] = map[string]string{}
			for k, column := range l.columns {
				objects[i][column] = row[k]
			}
		}
		return a.printJSON(objects)
	}
	t := table.NewWriter()
	t.SetOutputMirror(a.Out)
	t.SetStyle(plainStyle())
	t.AppendHeader(tableRow(l.columns))
	for _, row := range l.rows {
		t.AppendRow(tableRow(row))
	}
	t.Render()
	return nil
}

// plainStyle is a table without lines, for reading and for cutting by column.
func plainStyle() table.Style {
	s := table.StyleDefault
	s.Options = table.OptionsNoBordersAndSeparators
	s.Box.PaddingLeft = ""
	s.Box.PaddingRight = "  "
	return s
}

func tableRow(cells []string) table.Row {
	row := make(table.Row, len(cells))
	for i, c := range cells {
		row[i] = c
	}
	return row
}

func listPlans() (listing, error) {
	l := listing{columns: []string{"plan", "target", "description"}}
	for _, name := range plans.Library() {
		p, _, err := plans.LoadFile(name, os.ReadFile)
		if err != nil {
			return l, err
		}
		l.rows = append(l.rows, []string{name, p.Target.Kind, p.Description})
	}
	return l, nil
}

func listFaults() (listing, error) {
	l := listing{columns: []string{"fault", "sort", "needs", "with", "summary"}}
	all := builtinFaults(nil)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		d := all[name].Describe()
		sort := "fault"
		if d.Instant {
			sort = "action"
		}
		var needs, fields []string
		for _, c := range d.Needs {
			needs = append(needs, string(c))
		}
		for _, f := range d.Fields {
			text := f.Name
			if f.Default != "" {
				text += "=" + f.Default
			}
			fields = append(fields, text)
		}
		l.rows = append(l.rows, []string{name, sort, strings.Join(needs, " "), strings.Join(fields, " "), d.Summary})
	}
	return l, nil
}

func listTargets() (listing, error) {
	l := listing{columns: []string{"target", "capabilities", "summary"}}
	kinds := builtinKinds(nil)
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		forecast, err := kinds[name].Check(func(any) error { return nil })
		if err != nil {
			return l, err
		}
		var can []string
		for _, c := range forecast.Offer.Info.Capabilities {
			can = append(can, string(c))
		}
		l.rows = append(l.rows, []string{name, strings.Join(can, " "), kinds[name].Summary})
	}
	return l, nil
}

func listMetrics() (listing, error) {
	l := listing{columns: []string{"metric", "unit", "better", "by", "summary"}}
	for _, m := range analysis.Catalogue() {
		l.rows = append(l.rows, []string{m.Name, m.Unit, string(m.Better), m.By, m.Doc})
	}
	return l, nil
}
