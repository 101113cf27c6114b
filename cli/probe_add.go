package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
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
	interval, lasts, measureFor, lease               time.Duration
	delivery                                         string // each, or a time
	percentiles                                      []float64
	oneIn                                            int64
	budget                                           float64
	inactive, histogram                              bool
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

A region is the id of a unit of the program: "mirador sir --pid PID" lists them, and the
shell completes them. "mirador catalog" lists the metrics. Without --process and --thread,
values on a region are by thread, and others are of all processes together.

With --json it prints one object. Without --for it is the probe as "probe list" knows it:
id, app, state, placement and others. With --for it has these fields:
  probe, app, region, label  what was measured; region and label only if there are any
  placement                  where it ran: inline, kernel or trap
  seconds                    how long it measured
  notice                     why it measured no longer, if the gateway stopped it
  values                     a list of objects: node, process, thread and name (if the value
                             is one of these), metric, function (AVERAGE, p99 …, if any),
                             value (a number, or null if nothing was measured) and unit
  histogram                  with --histogram a list of objects: at_most_seconds (0: no limit) and
                             executions, which took at most that long, and longer than those before`,
		Example: `  mirador probe add --region mmul:dot --metric COUNT,WC_TIME
  mirador probe add --region mmul:dot --metric WC_TIME --percentiles 50,99 --for 10s
  mirador probe add --region mmul:dot --metric WC_TIME --histogram --for 10s
  mirador probe add --metric SYSCALL_COUNT --process '*' --for 5s --json | jq '.values[0].value'`,
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
	flags.StringSliceVar(&o.metrics, "metric", nil, "a metric, or several with commas; may be repeated")
	flags.StringVar(&o.node, "node", "", "a node's id, * for values of whole nodes")
	flags.StringVar(&o.process, "process", "", "a process's id, * for values of whole processes")
	flags.StringVar(&o.thread, "thread", "", "a thread's id or name, * for all, ? for those that execute the region")
	flags.StringSliceVar(&o.aggregates, "aggregate", nil, "AVERAGE, MAXIMUM, MINIMUM, SUM or VARIANCE over all threads and executions, or several with commas")
	flags.DurationVar(&o.interval, "interval", 0, "measure at this interval")
	flags.DurationVar(&o.lasts, "duration", 0, "measure the difference over this long, in each interval")
	flags.StringVar(&o.delivery, "delivery", "", "send the values to the probe's stream at this interval, or after each measurement")
	flags.Float64SliceVar(&o.percentiles, "percentiles", nil, "percentiles of the region's durations, such as 50,99")
	flags.BoolVar(&o.histogram, "histogram", false, "with --for, also print how many executions took how long; percentiles are 50,99,100 if you name none")
	flags.Int64Var(&o.oneIn, "one-in", 0, "time one execution in this many")
	flags.Float64Var(&o.budget, "budget", 0, "deactivate the probe when it takes more than this percentage of the processes' time")
	flags.StringVar(&o.destination, "destination", "", "where to send the values: a file, unix:///path, http://host/path or https://host/path")
	flags.StringVar(&o.label, "label", "", "a name for the values in the gateway's metrics, for Prometheus")
	flags.StringVar(&o.clock, "clock", "ordered", "ordered, or fast: less exact and cheaper")
	flags.BoolVar(&o.inactive, "inactive", false, "do not measure before the probe is activated")
	flags.DurationVar(&o.lease, "lease", 0, "remove the probe when nothing has used it for this long (default never; with --for a minute more than that)")
	flags.DurationVar(&o.measureFor, "for", 0, "measure for this long, print the values, and remove the probe")
	completes(cmd, "app", g.completeApps)
	completes(cmd, "region", g.completeUnits)
	completes(cmd, "to", g.completeUnits)
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
	if o.histogram {
		if o.measureFor <= 0 {
			return nil, usagef("--histogram needs --for, such as --for 5s")
		}
		o.label = cmp.Or(o.label, "histogram") // the gateway has the histograms of probes with a label
		if len(o.percentiles) == 0 {
			o.percentiles = []float64{50, 99, 100}
		}
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
		r.Region = &mir.CodeRegion{From: o.region, To: o.end()}
	}
	for _, name := range o.metrics {
		r.Metrics = append(r.Metrics, mir.Metric{Name: name})
	}
	var err error
	r.Measuring, err = o.measuring()
	return r, err
}

// end returns the unit whose end ends the region. Metrics other than these have the value at the beginning of a region
// that is named once (MIR 4).
func (o *probeOptions) end() string {
	whole := func(name string) bool {
		return slices.Contains([]string{"COUNT", "WC_TIME", "CPU_TIME"}, strings.TrimPrefix(name, "mir:"))
	}
	if o.to != "" || !slices.ContainsFunc(o.metrics, func(name string) bool { return !whole(name) }) {
		return o.to
	}
	return o.region
}

// measuring returns how often to measure and to deliver, nil for the gateway's defaults.
func (o *probeOptions) measuring() (*mir.Measuring, error) {
	if o.destination != "" && o.delivery == "" {
		return nil, usagef("--destination needs a --delivery, such as 1s")
	}
	if o.interval == 0 && o.lasts == 0 && o.delivery == "" && len(o.aggregates) == 0 {
		return nil, nil
	}
	m := &mir.Measuring{Interval: milliseconds(o.interval), Duration: milliseconds(o.lasts)}
	switch every, err := time.ParseDuration(o.delivery); {
	case o.delivery == "":
	case o.delivery == "each":
		each := int64(-1)
		m.Delivery = &each
	case err != nil || every <= 0:
		return nil, usagef("--delivery is %q, want each or a time such as 1s", o.delivery)
	default:
		m.Delivery = milliseconds(every)
	}
	if o.destination != "" {
		m.Destination = &o.destination
		if file, err := filepath.Abs(o.destination); err == nil && o.destination != "-" && !strings.Contains(o.destination, ":") {
			file = "file://" + file
			m.Destination = &file
		}
	}
	for _, name := range o.aggregates {
		m.Aggregates = append(m.Aggregates, mir.Function(strings.ToUpper(name)))
	}
	return m, nil
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
	if o.measureFor <= 0 {
		p, err := o.plant(ctx, g, c, request)
		if err != nil {
			return err
		}
		return o.printMade(g, p.Last())
	}
	m, err := o.measure(ctx, g, c, request)
	if err != nil {
		return err
	}
	return o.printMeasured(g, m)
}

// measurement is what a probe has measured in its life.
type measurement struct {
	made      client.Status // after it was planted
	read      reading
	lasted    time.Duration
	histogram []bucket
}

// measure plants a probe, reads it after the time that the flags say, and removes it.
func (o *probeOptions) measure(ctx context.Context, g *globals, c *client.Client, request *mir.InstrRequest) (m measurement, err error) {
	p, err := o.plant(ctx, g, c, request)
	if err != nil {
		return m, err
	}
	m.made = p.Last()
	planted := time.Now()
	done := g.patience(fmt.Sprintf("measuring for %v", o.measureFor))
	measures(ctx, p, planted.Add(o.measureFor))
	done()
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	m.read, err = readProbe(bounded, c, p)
	m.lasted = time.Since(planted)
	if o.histogram && err == nil {
		m.histogram, err = readHistogram(bounded, c, p.ID)
	}
	removal, end := context.WithTimeout(context.WithoutCancel(ctx), grace) // also if reading took all of its time
	defer end()
	if left := p.Remove(removal); left != nil {
		return m, fmt.Errorf("probe %s was not removed: %w", p.ID, left)
	}
	return m, err
}

// measures waits until the time has come, the command is interrupted or the processes have ended.
func measures(ctx context.Context, p *client.Probe, end time.Time) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	over := time.After(time.Until(end))
	for {
		select {
		case <-ctx.Done():
			return
		case <-over:
			return
		case <-tick.C:
			if s, err := p.Status(ctx); err == nil && s.Gone {
				return
			}
		}
	}
}

// plant makes the probe, of the thread with the name that was given.
func (o *probeOptions) plant(ctx context.Context, g *globals, c *client.Client, request *mir.InstrRequest) (*client.Probe, error) {
	defer g.patience("planting the probe")()
	// An interrupt must not end the wait: the probe would be left, and its id not be known.
	ctx = context.WithoutCancel(ctx)
	if err := o.addEntities(ctx, c, request); err != nil {
		return nil, err
	}
	return c.Instrument(ctx, o.app, request)
}

func (o *probeOptions) addEntities(ctx context.Context, c *client.Client, request *mir.InstrRequest) error {
	thread, err := threadNamed(ctx, c, o.app, o.thread)
	request.Entities = nested([]mir.Entity{{Kind: mir.Node, ID: o.node}, {Kind: mir.Process, ID: o.process}, {Kind: mir.Thread, ID: thread}})
	return err
}

// printMade prints what was planted.
func (o *probeOptions) printMade(g *globals, p client.Status) error {
	if o.format.json {
		return printJSON(g.streams.Out, p)
	}
	if p.Notice != "" {
		fmt.Fprintf(g.streams.Err, "mirador: %s\n", plainCell(p.Notice))
	}
	_, err := fmt.Fprintln(g.streams.Out, strings.TrimSpace(plainCell(p.ID+" "+p.Dearest().Name)))
	return err
}

func (o *probeOptions) printMeasured(g *globals, m measurement) error {
	if !o.format.json {
		err := m.read.print(g.streams.Out, o.format)
		if len(m.histogram) > 0 && !o.format.xml {
			fmt.Fprintln(g.streams.Out)
			err = errors.Join(err, printHistogram(g.streams.Out, m.histogram))
		}
		return err
	}
	if m.read.probe.Gone {
		m.read.probe.Placements = m.made.Placements // an ended process has none
	}
	return printJSON(g.streams.Out, measuredOf(&m))
}

// measured is what "probe add --for --json" prints.
type measured struct {
	Probe     string       `json:"probe"`
	App       string       `json:"app"`
	Region    string       `json:"region,omitempty"`
	Label     string       `json:"label,omitempty"`
	Placement string       `json:"placement"`
	Seconds   float64      `json:"seconds"`
	Notice    string       `json:"notice,omitempty"`
	Values    []probeValue `json:"values"`
	Histogram []bucket     `json:"histogram,omitempty"`
}

func measuredOf(m *measurement) measured {
	r := &m.read
	p := &r.probe
	return measured{
		Probe: p.ID, App: p.App, Region: p.Region, Label: p.Label, Placement: p.Dearest().Name,
		Seconds: mir.Rounded(m.lasted.Seconds(), 3), Notice: r.note(), Values: append([]probeValue{}, r.values...), // not null
		Histogram: m.histogram,
	}
}
