package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mirador/mir"
	"mirador/mir/client"
	"mirador/omis/host/calls"
)

// syscallOptions are the flags of "mirador syscalls".
type syscallOptions struct {
	probe  probeOptions // of the probe that measures
	sort   string       // time or calls
	format tableFormat
}

func newSyscalls(g *globals) *cobra.Command {
	var o syscallOptions
	cmd := &cobra.Command{
		Use:   "syscalls NAME [--for TIME] [flags]",
		Short: "Count and time the system calls of an application, by name",
		Long: `Counts and times the system calls of an application for a while, and lists those that it
made: the longest together first, or with --sort calls the most frequent. The kernel itself
counts them: no thread is stopped or traced, and a call takes 0.3 µs longer. The command
refuses to measure where that is impossible.

The time of a call is from its start to its end, as "strace -c -w" counts it, and includes
waiting. A call that has not ended when the measurement ends counts, but has no time.

With --region it measures twice that long: first all calls, to learn their names, and then
those that threads make while they execute the region. "(others)" are the calls whose names
did not appear in the first half.`,
		Example: `  mirador syscalls mmul
  mirador syscalls mmul --for 10s --sort calls
  mirador syscalls mmul --region mmul:multiply --for 5s --json`,
		Args:              arguments(cobra.ExactArgs(1)),
		ValidArgsFunction: g.completeApps,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.sort != "time" && o.sort != "calls" {
				return usagef("--sort is %q, want time or calls", o.sort)
			}
			if o.probe.measureFor <= 0 {
				return usagef("--for must be positive")
			}
			o.probe.app, o.probe.clock = args[0], "ordered"
			return g.withGateway(func(c *client.Client) error { return o.run(cmd.Context(), g, c) })
		},
	}
	o.format.flags(cmd)
	flags := cmd.Flags()
	flags.DurationVar(&o.probe.measureFor, "for", 5*time.Second, "measure for this long")
	flags.StringVar(&o.sort, "sort", "time", "time or calls")
	flags.StringVar(&o.probe.process, "process", "", "only this process, by its token")
	flags.StringVar(&o.probe.thread, "thread", "", "only this thread, by its token or name")
	flags.StringVar(&o.probe.region, "region", "", "only in executions of this unit, such as mmul:dot")
	completes(cmd, "sort", cobra.FixedCompletions([]string{"time", "calls"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// madeCall is what an application has spent on the system calls of one name.
type madeCall struct {
	Call    string  `json:"call" xml:"call,attr"`
	Calls   int64   `json:"calls" xml:"calls,attr"`
	Seconds float64 `json:"seconds" xml:"seconds,attr"` // of those that have ended
}

// otherCalls is the name of a row for all calls that have no row of their own.
const otherCalls = "(others)"

func (o *syscallOptions) run(ctx context.Context, g *globals, c *client.Client) error {
	region := o.probe.region
	o.probe.region = ""
	if err := o.areFew(ctx, c); err != nil {
		return err
	}
	if err := o.runsInKernel(ctx, c); err != nil {
		return err
	}
	names := calls.Names()
	if region != "" {
		made, err := o.measure(ctx, g, c, names, "SYSCALL_COUNT")
		if err != nil {
			return err
		}
		names = []string{otherCalls}
		for _, m := range made {
			names = append(names, m.Call)
		}
		o.probe.region, o.probe.aggregates = region, []string{"SUM"}
	}
	made, err := o.measure(ctx, g, c, names, "SYSCALL_COUNT", "SYSCALL_TIME")
	if err != nil {
		return err
	}
	return o.print(g, made)
}

// mostProcesses is how many processes are measured at once. In each the kernel gets two programs for each name of a
// call, and it has room for 8,000. Without room the monitor would trace the processes.
const mostProcesses = 8

// areFew reports whether the application has too many processes.
func (o *syscallOptions) areFew(ctx context.Context, c *client.Client) error {
	app, err := c.App(ctx, o.probe.app)
	if err != nil || strings.Trim(o.probe.process, "*") != "" || o.probe.thread != "" {
		return err
	}
	app.Processes = slices.DeleteFunc(app.Processes, func(p client.Process) bool { return p.Gone })
	if n := len(app.Processes); n > mostProcesses {
		return fmt.Errorf("%s has %d processes, more than %d; choose one with --process, such as %s", o.probe.app, n, mostProcesses, app.Processes[0].Token)
	}
	return nil
}

// runsInKernel reports why the system calls would be counted elsewhere than in the kernel, which would
// slow the application down.
func (o *syscallOptions) runsInKernel(ctx context.Context, c *client.Client) error {
	o.probe.metrics = []string{"SYSCALL_TIME"}
	request, err := o.probe.request()
	if err == nil {
		err = o.probe.addEntities(ctx, c, request)
	}
	if err != nil {
		return err
	}
	plan, err := c.Explain(ctx, o.probe.app, request)
	if err != nil {
		return err
	}
	for _, r := range plan.Requests {
		if p := r.Placement; p.Name != "" && p.Name != "kernel" {
			return fmt.Errorf("the kernel cannot count these system calls: %s; \"mirador probe add --metric SYSCALL_TIME\" measures them at a higher cost", p.Why)
		}
	}
	return nil
}

// measure measures metrics of system calls by a probe for a while, and lists the calls that were made.
func (o *syscallOptions) measure(ctx context.Context, g *globals, c *client.Client, names []string, metrics ...string) (list []madeCall, err error) {
	o.probe.metrics = nil
	for _, name := range names {
		for _, metric := range metrics {
			if name != otherCalls {
				metric += ":" + name
			}
			o.probe.metrics = append(o.probe.metrics, metric)
		}
	}
	request, err := o.probe.request()
	if err != nil {
		return nil, err
	}
	m, err := o.probe.measure(ctx, g, c, request)
	if err != nil {
		return nil, err
	}
	if note := m.read.note(); note != "" {
		fmt.Fprintf(g.streams.Err, "mirador: %s\n", plain(note))
	}
	return madeCalls(m.read.values)
}

// madeCalls adds up the values of system calls by name. What the values of all calls contain besides is of other calls.
func madeCalls(values []probeValue) (list []madeCall, err error) {
	byName := make(map[string]*madeCall)
	var names []string
	for _, v := range values {
		metric, name, _ := strings.Cut(v.Metric, ":")
		if byName[name] == nil {
			byName[name] = &madeCall{Call: name}
			names = append(names, name)
		}
		value, err := v.Value.Float64()
		switch {
		case v.Value == "": // nothing was measured
		case err != nil:
			return nil, err
		case metric == "SYSCALL_COUNT":
			byName[name].Calls += int64(value)
		default:
			byName[name].Seconds += value / 1000
		}
	}
	if all := byName[""]; all != nil {
		all.Call = otherCalls
		for name, m := range byName {
			if name != "" {
				all.Calls, all.Seconds = all.Calls-m.Calls, all.Seconds-m.Seconds
			}
		}
	}
	for _, name := range names {
		// A call that began before the measurement has no count. The clocks of others and of all are read at different times.
		if m := byName[name]; m.Calls > 0 || m.Seconds > 0 && name != "" {
			m.Seconds = mir.Rounded(m.Seconds, 9)
			list = append(list, *m)
		}
	}
	return list, nil
}

// print prints the calls in the order of the flags, and as text also their sum.
func (o *syscallOptions) print(g *globals, list []madeCall) error {
	slices.SortFunc(list, func(a, b madeCall) int {
		byTime, byCalls := cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(b.Calls, a.Calls)
		if o.sort == "calls" {
			byTime, byCalls = byCalls, byTime
		}
		return cmp.Or(byTime, byCalls, strings.Compare(a.Call, b.Call))
	})
	all := madeCall{Call: "total"}
	for _, m := range list {
		all.Calls, all.Seconds = all.Calls+m.Calls, all.Seconds+m.Seconds
	}
	if !o.format.json && !o.format.xml {
		list = append(list, all)
	}
	return printTable(g.streams.Out, o.format, table[madeCall]{
		root: "syscalls", row: "syscall", rows: list, header: []string{"TIME %", "SECONDS", "µS/CALL", "CALLS", "CALL"},
		cells: func(m madeCall) []string {
			return []string{
				fmt.Sprintf("%6.2f", 100*m.Seconds/cmp.Or(all.Seconds, 1)), fmt.Sprintf("%.6f", m.Seconds),
				fmt.Sprintf("%.1f", 1e6*m.Seconds/max(float64(m.Calls), 1)), fmt.Sprint(m.Calls), m.Call,
			}
		},
	})
}
