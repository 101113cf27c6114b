package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mirador/mir/client"
)

func newProbe(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "probe",
		Short: "Plant, read, watch and remove probes without XML",
		Long: `Plants, reads, watches and removes probes. Each command posts the MIR document that
does the same; "mirador post" posts documents of your own.`,
		Example: `  mirador probe add --region mmul:dot --metric COUNT --metric WC_TIME
  mirador probe value probe-1
  mirador probe rm probe-1`,
		// Flags follow the name of a command. If that is misspelt, it is the mistake to report.
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true}, SuggestionsMinimumDistance: 2,
		Args: knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newProbeAdd(g), newProbeList(g), newProbeValue(g), newProbeWatch(g), newProbeRemove(g))
	return cmd
}

func newProbeList(g *globals) *cobra.Command {
	var format tableFormat
	var app string
	cmd := &cobra.Command{
		Use:     "list [--app NAME]",
		Short:   "List the probes: state, placement, cost",
		Long:    "Lists the probes: what each measures, where it runs, and what it costs. The cost is in nanoseconds for each hit, the share in percent of the time of the processes.",
		Example: "  mirador probe list\n  mirador probe list --app mmul --json",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := answer(g, func(c *client.Client) ([]client.Status, error) { return c.Probes(cmd.Context()) })
			if err != nil {
				return err
			}
			rows := []probeRow{}
			for i := range all {
				if app == "" || all[i].App == app {
					rows = append(rows, rowOf(&all[i]))
				}
			}
			return printTable(g.streams.Out, format, table[probeRow]{
				root: "probes", row: "probe", rows: rows, header: []string{"ID", "APP", "STATE", "REGION", "METRICS", "PLACEMENT", "COST", "SHARE", "LABEL", "NOTE"},
				cells: probeRow.cells,
			})
		},
	}
	format.flags(cmd)
	cmd.Flags().StringVar(&app, "app", "", "list the probes of this application only")
	completes(cmd, "app", g.completeApps)
	return cmd
}

// probeRow is a probe in the list of probes.
type probeRow struct {
	ID        string  `json:"id" xml:"id,attr"`
	App       string  `json:"app" xml:"app,attr"`
	State     string  `json:"state" xml:"state,attr"`
	Region    string  `json:"region,omitempty" xml:"region,attr,omitempty"`
	Metrics   string  `json:"metrics" xml:"metrics,attr"`
	Placement string  `json:"placement,omitempty" xml:"placement,attr,omitempty"`
	Cost      float64 `json:"cost,omitempty" xml:"cost,attr,omitempty"`   // nanoseconds for each hit
	Share     float64 `json:"share,omitempty" xml:"share,attr,omitempty"` // of the time of the processes, from 0 to 1
	Label     string  `json:"label,omitempty" xml:"label,attr,omitempty"`
	Note      string  `json:"note,omitempty" xml:"note,attr,omitempty"`
}

func rowOf(p *client.Status) probeRow {
	at := p.Dearest()
	r := probeRow{
		ID: p.ID, App: p.App, State: string(p.State), Region: p.Region, Metrics: strings.Join(p.Metrics, ","),
		Placement: at.Name, Cost: at.Cost, Label: p.Label, Note: cmp.Or(p.Failure, p.Notice),
	}
	if p.Gone {
		r.Placement, r.Cost, r.Note = "", 0, cmp.Or(r.Note, allEnded)
	}
	if p.Cost != nil {
		r.Share = p.Cost.Share
	}
	return r
}

func (r probeRow) cells() []string {
	cost, share := "", ""
	if r.Cost > 0 {
		cost = fmt.Sprintf("%.3g ns", r.Cost)
	}
	if r.Share > 0 {
		share = fmt.Sprintf("%.2g %%", 100*r.Share)
	}
	return []string{r.ID, r.App, r.State, r.Region, r.Metrics, r.Placement, cost, share, r.Label, r.Note}
}

func newProbeRemove(g *globals) *cobra.Command {
	var label, app string
	cmd := &cobra.Command{
		Use:               "rm ID… | --label LABEL | --app NAME",
		Short:             "Remove probes",
		Long:              "Removes probes: by their ids, or all with a label, or all of an application. Every byte of the program is what it was before.",
		Example:           "  mirador probe rm probe-1 probe-2\n  mirador probe rm --label ci\n  mirador probe rm --app mmul",
		Args:              probeArguments(&label, &app),
		ValidArgsFunction: g.completeProbes,
		RunE: func(cmd *cobra.Command, ids []string) error {
			return g.withGateway(func(c *client.Client) error {
				ids, err := selected(cmd.Context(), c, ids, label, app)
				if err != nil {
					return err
				}
				var errs []error
				for _, id := range ids {
					p, err := c.Probe(cmd.Context(), id)
					if err == nil {
						err = p.Remove(cmd.Context())
					}
					errs = append(errs, err)
				}
				return errors.Join(errs...)
			})
		},
	}
	labelFlag(g, cmd, &label)
	cmd.Flags().StringVar(&app, "app", "", "the probes of this application, in place of ids")
	completes(cmd, "app", g.completeApps)
	return cmd
}

func labelFlag(g *globals, cmd *cobra.Command, label *string) {
	cmd.Flags().StringVar(label, "label", "", "the probes with this label, in place of ids")
	completes(cmd, "label", g.completeLabels)
}

// probeArguments checks that there are either ids or one of the flags that select probes.
func probeArguments(flags ...*string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, ids []string) error {
		if slices.ContainsFunc(flags, func(flag *string) bool { return *flag != "" }) {
			return arguments(cobra.NoArgs)(cmd, ids)
		}
		return arguments(cobra.MinimumNArgs(1))(cmd, ids)
	}
}

// selected returns the ids of the probes with a label, of an application, or both; the given ids if both are "".
func selected(ctx context.Context, c *client.Client, ids []string, label, app string) ([]string, error) {
	if label == "" && app == "" {
		return ids, nil
	}
	if app != "" {
		if _, err := c.App(ctx, app); err != nil {
			return nil, err
		}
	}
	all, err := c.Probes(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if (label == "" || p.Label == label) && (app == "" || p.App == app) {
			ids = append(ids, p.ID)
		}
	}
	if len(ids) == 0 && label != "" {
		return nil, fmt.Errorf("no probe has the label %q; \"mirador probe list\" shows the labels", label)
	}
	return ids, nil
}
