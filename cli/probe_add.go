package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mirador/mir"
	"mirador/mir/client"
)

// probeOptions are the flags of "mirador probe add".
type probeOptions struct {
	app, region, to                                  string
	metrics, aggregates                              []string
	node, process, thread, clock, destination, label string
	interval, delivery, measureFor, lease            time.Duration
	percentiles                                      []float64
	oneIn                                            int64
	budget                                           float64
	inactive                                         bool
	format                                           tableFormat
}

func newProbeAdd(g *globals) *cobra.Command {
	var o probeOptions
	cmd := &cobra.Command{
		Use:   "add --metric NAME… [--region UNIT] [flags]",
		Short: "Plant a probe, or measure for a while with --for",
		Long: `Plants a probe and prints its id and where it runs. It measures until it is removed.

With --for the command measures for that long, prints the values, and removes the
probe; an interrupt ends the measurement early. Times are in milliseconds.

A region is the id of a unit of the program ("mirador sir", "mirador catalog" lists the
metrics). Without --process and --thread, values are by thread.`,
		Example: `  mirador probe add --region mmul:dot --metric COUNT --metric WC_TIME
  mirador probe add --region mmul:dot --metric WC_TIME --percentiles 50,99 --for 10s
  mirador probe add --metric SYSCALL_COUNT --process '*' --for 5s --json`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			request, err := o.request()
			if err != nil {
				return err
			}
			return g.withGateway(func(c *client.Client) error { return o.run(cmd.Context(), g, c, request) })
		},
	}
	o.format.flags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.app, "app", "", "the application, where there are several")
	flags.StringVar(&o.region, "region", "", "the unit to measure, such as mmul:dot")
	flags.StringVar(&o.to, "to", "", "the unit whose end ends the region (default the region's own)")
	flags.StringArrayVar(&o.metrics, "metric", nil, "a metric, once or more")
	flags.StringVar(&o.node, "node", "", "a node's id, * for values of whole nodes")
	flags.StringVar(&o.process, "process", "", "a process's id, * for values of whole processes")
	flags.StringVar(&o.thread, "thread", "", "a thread's id, * for all, ? for those that execute the region")
	flags.StringArrayVar(&o.aggregates, "aggregate", nil, "AVERAGE, MAXIMUM, MINIMUM, SUM or VARIANCE over all threads and executions, once or more")
	flags.DurationVar(&o.interval, "interval", 0, "measure at this interval; for metrics without a region")
	flags.DurationVar(&o.delivery, "delivery", 0, "send the values to the probe's stream at this interval")
	flags.Float64SliceVar(&o.percentiles, "percentiles", nil, "percentiles of the region's durations, such as 50,99")
	flags.Int64Var(&o.oneIn, "one-in", 0, "time one execution in this many")
	flags.Float64Var(&o.budget, "budget", 0, "deactivate the probe when it takes more than this percentage of the processes' time")
	flags.StringVar(&o.destination, "destination", "", "where to send the values: file:///path, http://host/path or https://host/path")
	flags.StringVar(&o.label, "label", "", "a name for the values in the gateway's metrics, for Prometheus")
	flags.StringVar(&o.clock, "clock", "ordered", "ordered, or fast: less exact and cheaper")
	flags.BoolVar(&o.inactive, "inactive", false, "do not measure before the probe is activated")
	flags.DurationVar(&o.lease, "lease", 0, "remove the probe when nothing has used it for this long (default never; with --for a minute more than that)")
	flags.DurationVar(&o.measureFor, "for", 0, "measure for this long, print the values, and remove the probe")
	completes(cmd, "app", g.completeApps)
	completes(cmd, "metric", g.completeMetrics)
	completes(cmd, "aggregate", cobra.FixedCompletions([]string{"AVERAGE", "MAXIMUM", "MINIMUM", "SUM", "VARIANCE"}, cobra.ShellCompDirectiveNoFileComp))
	completes(cmd, "clock", cobra.FixedCompletions([]string{"ordered", "fast"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// request returns the document of the flags.
func (o *probeOptions) request() (*mir.InstrRequest, error) {
	if len(o.metrics) == 0 {
		return nil, usagef("a --metric is needed, such as COUNT; \"mirador catalog\" lists them")
	}
	if o.inactive && o.measureFor > 0 {
		return nil, usagef("--for and --inactive exclude each other")
	}
	if o.clock != "ordered" && o.clock != "fast" {
		return nil, usagef("--clock is %q, want ordered or fast", o.clock)
	}
	r := &mir.InstrRequest{
		Activated: !o.inactive, Flush: true, Details: true,
		Fast: o.clock == "fast", OneIn: o.oneIn, Percentiles: o.percentiles, Budget: o.budget / 100, Lease: o.lease, Label: o.label,
	}
	if o.measureFor > 0 && o.lease == 0 {
		r.Lease = o.measureFor + time.Minute // for when this command is killed
	}
	if o.region != "" || o.to != "" {
		r.Region = &mir.CodeRegion{From: o.region, To: o.to}
	}
	for _, name := range o.metrics {
		r.Metrics = append(r.Metrics, mir.Metric{Name: name})
	}
	r.Entities = nested([]mir.Entity{{Kind: mir.Node, ID: o.node}, {Kind: mir.Process, ID: o.process}, {Kind: mir.Thread, ID: o.thread}})
	if o.destination != "" && o.delivery <= 0 {
		return nil, usagef("--destination needs a --delivery, such as 1s")
	}
	if o.interval > 0 || o.delivery > 0 || len(o.aggregates) > 0 {
		r.Measuring = &mir.Measuring{Interval: milliseconds(o.interval), Delivery: milliseconds(o.delivery)}
		if o.destination != "" {
			r.Measuring.Destination = &o.destination
		}
		for _, name := range o.aggregates {
			r.Measuring.Aggregates = append(r.Measuring.Aggregates, mir.Function(strings.ToUpper(name)))
		}
	}
	return r, nil
}

// nested returns the entities that have an id, each inside the one before.
func nested(list []mir.Entity) []mir.Entity {
	for i, e := range list {
		if e.ID != "" {
			e.Children = nested(list[i+1:])
			return []mir.Entity{e}
		}
	}
	return nil
}

// milliseconds returns a time as MIR writes it, nil for none.
func milliseconds(d time.Duration) *int64 {
	if d <= 0 {
		return nil
	}
	ms := max(d.Milliseconds(), 1)
	return &ms
}

func (o *probeOptions) run(ctx context.Context, g *globals, c *client.Client, request *mir.InstrRequest) error {
	done := g.patience("planting the probe")
	// An interrupt must not end the wait: the probe would be left, and its id not be known.
	p, err := c.Instrument(context.WithoutCancel(ctx), o.app, request)
	done()
	if err != nil {
		return err
	}
	if o.measureFor <= 0 {
		return o.printMade(g, p.Last())
	}
	planted := time.Now()
	done = g.patience(fmt.Sprintf("measuring for %v", o.measureFor))
	select {
	case <-ctx.Done():
	case <-time.After(time.Until(planted.Add(o.measureFor))):
	}
	done()
	return o.finish(context.WithoutCancel(ctx), g, c, p)
}

// printMade prints what was planted.
func (o *probeOptions) printMade(g *globals, p client.Status) error {
	if o.format.json {
		return printJSON(g.streams.Out, p)
	}
	_, err := fmt.Fprintln(g.streams.Out, strings.TrimSpace(plainCell(p.ID+" "+p.Dearest().Name)))
	return err
}

// finish prints the values of a probe and removes it, also if the values cannot be read.
func (o *probeOptions) finish(ctx context.Context, g *globals, c *client.Client, p *client.Probe) error {
	bounded, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	r, err := readProbe(bounded, c, p)
	if left := p.Remove(bounded); left != nil {
		return fmt.Errorf("probe %s was not removed: %w", p.ID, left)
	}
	if err != nil {
		return err
	}
	return r.print(g.streams.Out, o.format)
}
