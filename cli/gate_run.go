package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mirador/cli/gate"
	"mirador/cli/gate/measure"
	"mirador/cli/gate/report"
	"mirador/cli/gate/request"
	"mirador/cli/gate/verdict"
	"mirador/mir"
	"mirador/mir/client"
)

// gateVerdict is the end of a gate that was judged and did not pass.
type gateVerdict struct{ outcome verdict.Outcome }

func (v gateVerdict) Error() string { return "the gate " + string(v.outcome) }

func (v gateVerdict) status() int {
	if v.outcome == verdict.Failed {
		return exitGateFailed
	}
	return exitGateUnclear
}

// gateOptions are the flags of "mirador gate run".
type gateOptions struct {
	file, base, head string
	measure.Options
	longest time.Duration
	formats gateFormats

	layoutFails bool
	store       gateStore
}

func newGate(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gate",
		Short: "Performance gates for continuous integration",
		Long: `Judges programs by a gate file, which contains MIR requests with limits. Exit status:
0 passed, 1 could not be judged, 2 bad usage or gate file, 3 no gateway, 4 failed,
5 inconclusive.`,
		Example: "  mirador gate run -f gate.xml --head ./shop",
		Args:    knownCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newGateRun(g), newGateCheck(g), newGateSelfTest(g), newGateInit(g), newGateHistory(g), newGateKeeper())
	return cmd
}

func newGateRun(g *globals) *cobra.Command {
	var o gateOptions
	cmd := &cobra.Command{
		Use:   "run -f FILE --head CMD|PID [--base CMD|PID] [flags]",
		Short: "Measure programs and judge them by a gate file",
		Long: `Starts the program --head (and --base, if the gate compares with it), measures what the
gate file asks for, and judges it. Programs are stopped before their first instruction
until they are measured, so that counts are exact from the first call on.

A program that ends is measured until its end. A server is measured while the command
--load runs, once the command --ready succeeds; {port} in these commands and in the program's
stands for a free port. Any program, also a running one (a PID), is measured for a time
by --for.

Times are judged by the interval of several runs (--runs): executions of the program or of
the load, or parts of the time --for. The verdict is "inconclusive" if the limit lies inside the
interval.

For a change of a time (max-change) both programs are started 9 to 60 times, and run by turns
on one processor, while the other one is stopped; both have to run until they are ended.
The load runs beside them. If the machine is too noisy to see such a change, the verdict
is "inconclusive".

The gate starts a gateway of its own, unless --gateway or MIRADOR_GATEWAY names one.`,
		Example: `  mirador gate run -f gate.xml --head './shop 1000'
  mirador gate run -f gate.xml --base ./shop-main --head ./shop
  mirador gate run -f gate.xml --head 'server -p {port}' --ready 'curl -s localhost:{port}' --load 'wrk http://localhost:{port}'
  mirador gate run -f gate.xml --head 4711 --for 30s`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), g) },
	}
	o.define(cmd)
	o.store.define(cmd)
	return cmd
}

func (o *gateOptions) define(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&o.file, "file", "f", "gate.xml", "the gate file")
	flags.StringVar(&o.base, "base", "", "the program to compare it with")
	o.defineRun(cmd)
	flags.IntVar(&o.Rounds, "rounds", 5, "how many blocks each program runs for in each start, for max-change")
	flags.DurationVar(&o.Block, "block", 100*time.Millisecond, "the length of a block, in which the programs run by ten turns each; longer if they make few calls")
	flags.BoolVar(&o.layoutFails, "layout-fails", false, "fail also if the code is the same and has only moved to other addresses")
	o.formats.define(cmd)
}

// run reads the gate, runs it, and prints the verdicts.
func (o *gateOptions) run(ctx context.Context, g *globals) error {
	it, err := o.read()
	if err != nil {
		return err
	}
	if err := o.sides(it); err != nil {
		return err
	}
	return o.judged(ctx, g, func(ctx context.Context, r *measure.Runner) (*report.Report, error) {
		it.Runner = r
		rep, err := it.Run(ctx)
		if err == nil {
			err = o.store.record(it, rep)
		}
		return rep, err
	})
}

// read reads the part of the gate that judges programs.
func (o *gateOptions) read() (*gate.Gate, error) {
	file, err := readGate(o.file)
	if err != nil {
		return nil, err
	}
	if file = file.Select(false); len(file.Limits) == 0 {
		return nil, usagef("%s has only limits of Go benchmarks: run go test -bench, and judge its output by gate check", o.file)
	}
	return &gate.Gate{Name: o.file, File: file, LayoutFails: o.layoutFails}, nil
}

// judged calls do with a gateway and within the time, and prints the verdicts.
func (o *gateOptions) judged(ctx context.Context, g *globals, do func(context.Context, *measure.Runner) (*report.Report, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, o.longest, fmt.Errorf("the gate was not done after %v (--max-time)", o.longest))
	defer cancel()
	var rep *report.Report
	err := o.prepared(ctx, g, func(r *measure.Runner) (err error) {
		rep, err = do(ctx, r)
		return err
	})
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	if err != nil {
		return err
	}
	return o.formats.publish(g, rep)
}

// readGate reads a gate file. A mistake in it is bad usage.
func readGate(path string) (*request.File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, usagef("cannot read the gate: %w", err)
	}
	file, err := request.Parse(text)
	var invalid *mir.Error
	if errors.As(err, &invalid) {
		return nil, usagef("%s: %s", path, strings.Join(invalid.Messages(), "\n"))
	}
	return file, err
}

// sides sets what the gate measures.
func (o *gateOptions) sides(it *gate.Gate) error {
	if o.head == "" {
		return usagef("a --head is needed: the command to judge, or the id of a running process")
	}
	if o.base == "" && o.store.dir != "" {
		if err := o.store.compare(it); err != nil {
			return err
		}
	} else if o.base == "" && it.File.NeedsBase() {
		return usagef("the gate compares with a base (exact=\"true\" or max-change): give a --base, such as the same program built from the main branch, or a --store with earlier runs")
	}
	if o.Load != "" && o.For > 0 {
		return usagef("--load and --for exclude each other: a load runs until it ends")
	}
	if o.Runs < 1 || o.Rounds < 1 || o.Block <= 0 {
		return usagef("--runs, --rounds and --block must be more than 0")
	}
	it.Head, it.Base = sideOf(o.head), sideOf(o.base)
	it.Base.IsBase = true
	if it.Stable == nil && len(it.File.Of(request.Relative)) > 0 && (it.Head.Command == "" || it.Base.Command == "") {
		return usagef("max-change of a time starts both programs many times and stops them by turns: give commands, not ids of processes")
	}
	for _, s := range []measure.Side{it.Head, it.Base} {
		if fields := strings.Fields(s.Command); len(fields) > 0 {
			o.Programs = append(o.Programs, filepath.Base(fields[0]))
		}
	}
	return nil
}

// sideOf returns a side: a number is the id of a process.
func sideOf(text string) measure.Side {
	if pid, err := strconv.Atoi(text); err == nil {
		return measure.Side{PID: pid}
	}
	return measure.Side{Command: text}
}

// prepared calls do with a keeper, a directory and a gateway.
func (o *gateOptions) prepared(ctx context.Context, g *globals, do func(*measure.Runner) error) (err error) {
	dir, err := os.MkdirTemp("", "mirador-gate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	keeper, err := measure.StartKeeper([]string{"/proc/self/exe", "gate", keeperCommand})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, keeper.Close()) }()
	if err := keeper.Remove(dir); err != nil {
		return err
	}
	c, done, err := g.gateOrPrivate(ctx, dir, keeper)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	return do(&measure.Runner{Options: o.Options, Client: c, Keeper: keeper, Dir: dir, Places: map[string]measure.Place{}, Note: func(format string, args ...any) {
		if isTerminal(g.streams.Err) {
			fmt.Fprintf(g.streams.Err, plain(format)+"\n", args...)
		}
	}, Warn: func(format string, args ...any) {
		fmt.Fprintf(g.streams.Err, "mirador: %s\n", plain(fmt.Sprintf(format, args...)))
	}})
}

// gateOrPrivate returns a client of the gateway that the user names, or of a new one.
func (g *globals) gateOrPrivate(ctx context.Context, dir string, keeper *measure.Keeper) (*client.Client, func() error, error) {
	if g.gateway != "" || os.Getenv("MIRADOR_GATEWAY") != "" {
		c, err := g.connect()
		if err != nil {
			return nil, nil, err
		}
		if _, err := c.Apps(ctx); err != nil {
			c.Close()
			return nil, nil, err
		}
		return c, func() error { c.Close(); return nil }, nil
	}
	cache := ""
	if user, err := os.UserCacheDir(); err == nil {
		cache = filepath.Join(user, "mirador", "gate")
	}
	p, err := measure.StartGateway(ctx, "/proc/self/exe", dir, cache, keeper)
	if err != nil {
		return nil, nil, err
	}
	return p.Client, func() error { return p.Close(cache) }, nil
}
