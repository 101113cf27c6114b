package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	gateway "mirador/http"
	"mirador/mir"
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
		Args: arguments(cobra.NoArgs),
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
			var all []gateway.Probe
			if err := g.call(cmd.Context(), client.Request{Method: http.MethodGet, Path: "/probes"}, &all); err != nil {
				return err
			}
			rows := []probeRow{}
			for i := range all {
				if app == "" || all[i].App == app {
					rows = append(rows, rowOf(&all[i]))
				}
			}
			return printTable(g.streams.Out, format, table[probeRow]{
				root: "probes", row: "probe", rows: rows, header: []string{"ID", "APP", "STATE", "REGION", "METRICS", "PLACEMENT", "COST", "SHARE", "NOTE"},
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
	Note      string  `json:"note,omitempty" xml:"note,attr,omitempty"`
}

func rowOf(p *gateway.Probe) probeRow {
	at := p.Dearest()
	r := probeRow{
		ID: p.ID, App: p.App, State: string(p.State), Region: p.Region, Metrics: strings.Join(p.Metrics, ","),
		Placement: at.Name, Cost: at.Cost, Note: cmp.Or(p.Failure, p.Notice),
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
	return []string{r.ID, r.App, r.State, r.Region, r.Metrics, r.Placement, cost, share, r.Note}
}

func newProbeRemove(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:               "rm ID…",
		Short:             "Remove probes",
		Long:              "Removes probes. Every byte of the program is what it was before.",
		Example:           "  mirador probe rm probe-1 probe-2",
		Args:              arguments(cobra.MinimumNArgs(1)),
		ValidArgsFunction: g.completeProbes,
		RunE: func(cmd *cobra.Command, ids []string) error {
			return g.withGateway(func(c *client.Client) error {
				var errs []error
				for _, id := range ids {
					p, err := findProbe(cmd.Context(), c, id)
					if err == nil {
						_, err = converse[*mir.Probe](cmd.Context(), c, p.App, control(mir.Remove, id))
					}
					errs = append(errs, err)
				}
				return errors.Join(errs...)
			})
		},
	}
}

// withGateway opens a connection for some requests.
func (g *globals) withGateway(f func(*client.Client) error) error {
	c, err := g.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	return f(c)
}

func findProbe(ctx context.Context, c *client.Client, id string) (p gateway.Probe, err error) {
	return p, call(ctx, c, client.Request{Method: http.MethodGet, Path: "/probes/" + url.PathEscape(id)}, &p)
}

// completes gives a flag its completion.
func completes(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // there is no such flag
	}
}

func (g *globals) completeProbes(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return complete(g, cmd, "/probes", func(p gateway.Probe) string { return p.ID + "\t" + strings.Join(p.Metrics, ",") + " " + p.Region })
}

func (g *globals) completeMetrics(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return complete(g, cmd, "/catalog", func(m gateway.Metric) string { return m.Name + "\t" + m.Doc })
}

func (g *globals) completeApps(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return complete(g, cmd, "/apps", func(a gateway.App) string { return a.Name })
}

// complete returns words from a list of the gateway. It waits for at most a second, because
// a shell waits for it.
func complete[T any](g *globals, cmd *cobra.Command, path string, word func(T) string) (words []string, _ cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), time.Second)
	defer cancel()
	var list []T
	err := g.withGateway(func(c *client.Client) error {
		return call(ctx, c, client.Request{Method: http.MethodGet, Path: path}, &list)
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	for _, one := range list {
		words = append(words, word(one))
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

func control(action mir.Action, id string) *mir.ControlRequest {
	return &mir.ControlRequest{Action: action, Probes: []mir.ProbeRef{{ID: id}}}
}

// converse posts a MIR document to an application and returns the answer, which is of
// type D unless it is an error.
func converse[D mir.Document](ctx context.Context, c *client.Client, app string, request mir.Document) (answer D, err error) {
	text, err := mir.Marshal(request)
	if err != nil {
		return answer, err
	}
	reply, err := c.Do(ctx, client.Request{Method: http.MethodPost, Path: documentPath(app), Type: "application/xml", Body: text, Prefer: representation})
	if err != nil {
		return answer, err
	}
	decoded, unclear := mir.Decode(reply.Body, mir.ReplyLimits())
	if failed, ok := decoded.(*mir.Errors); ok {
		return answer, refusals(failed)
	}
	answer, ok := decoded.(D)
	switch {
	case reply.Failed():
		return answer, errors.New(reply.Message())
	case unclear != nil:
		return answer, fmt.Errorf("cannot read the gateway's reply: %w", unclear)
	case !ok:
		return answer, fmt.Errorf("the gateway replied with a %s document", decoded.Root())
	}
	return answer, nil
}

// position matches the position in the posted document with which errors begin. Users of these
// commands have not written that document.
var position = regexp.MustCompile(`^line \d+, column \d+: `)

func refusals(failed *mir.Errors) error {
	var errs []error
	for _, message := range failed.Messages {
		errs = append(errs, errors.New(position.ReplaceAllString(message, "")))
	}
	return errors.Join(errs...)
}
