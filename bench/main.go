// Bench measures how fast mirador is, section by section. It compares each figure with a
// reference, and reports the goals and whether they are reached:
//
//	gateway   what the gateway adds to a request (this package)
//	hold      what it costs to hold a thread, and other operations that tools wait for (package hold)
//	probe     what probes add to a call, compared with bare eBPF programs, when they are switched
//	          off, and when many threads hit one (package probe, like all that follow)
//	peers     the same compared with other tools
//	records   what histograms and records of each hit add
//	many      ten thousand probed functions
//	documents as many functions, each probed by a document through the gateway
//	clients   many clients that poll the values of probes
//	deliveries as many probes that deliver to a file every second
//	executions a probe that delivers every execution of a function
//	first     how long the first value of a new gateway takes
//	large     the first probe in a program of 300 MB (with -only large, because building it takes long)
//	values    measurement documents of many values, beside encoding/xml (this package)
//	sources   how fast structures are read from source files
//	structures how fast structures are read from machine code, beside objdump
//	shares    which functions of real programs can be counted in their code (package shares)
//	truth     the reported mean durations, compared with the true ones
//	syscalls  what counting adds to a system call
//	gate      how often gates are wrong, and what they find (package gate; with -only gate, because it takes long)
//	plots     the cost of a probe by the numbers of probes, threads and hits (with -plots only)
//
// For the gateway, POST /mir with a VALUE request of 1 KiB goes through the whole
// pipeline to the monitor and back. The reference is a bare chi handler that reads the
// same body and writes the same reply. Both servers are processes with GOMAXPROCS=1,
// bound to one CPU; the client, the same for both, is bound to another CPU if there is
// one. Rounds alternate and are short, so that other load changes little from one to the
// next. The CPU time of the servers is measured too, since it does not depend on the
// client.
//
// The exit status does not depend on the goals, because the machine may be busy. People
// and the Makefile run it; no package imports it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"mirador/bench/gate"
	"mirador/bench/hold"
	"mirador/bench/plot"
	"mirador/bench/probe"
	"mirador/bench/report"
	"mirador/bench/shares"
)

func main() {
	if len(os.Args) == 4 && os.Args[1] == bareCommand {
		fail(serveBare(os.Args[2], os.Args[3]))
		return
	}
	if len(os.Args) == 2 && os.Args[1] == hold.WardenCommand {
		fail(hold.RunWarden())
		return
	}
	var o options
	flag.StringVar(&o.only, "only", "", "what to measure: one of "+strings.Join(sectionNames, ", ")+"; all if empty")
	flag.StringVar(&o.json, "json", "", "the file to which all figures are written as JSON")
	flag.StringVar(&o.plots, "plots", "", "the directory to write plots to, as SVG")
	flag.StringVar(&o.mirador, "mirador", "bin/mirador", "the program to measure")
	flag.StringVar(&o.target, "target", "bin/mmul", "the target to measure it with")
	flag.IntVar(&o.rounds, "rounds", 41, "rounds of each server")
	flag.IntVar(&o.requests, "requests", 1000, "requests of a round")
	flag.IntVar(&o.documents, "documents", 10_000, "number of probes, each requested by a document")
	flag.IntVar(&o.memory, "memory", 100_000, "requests over which the memory is watched")
	flag.Float64Var(&o.least, "least", 0, "fail if a ratio of the section gateway is lower than this")
	flag.StringVar(&o.hold.Sources, "references", "bench/reference", "the directory of the reference programs")
	flag.IntVar(&o.hold.Rounds, "hold-rounds", 15, "rounds of each way to hold a thread")
	flag.IntVar(&o.hold.Scale, "hold-scale", 1, "divisor of the numbers of hits")
	flag.IntVar(&o.probeRounds, "probe-rounds", 15, "rounds of each way to probe")
	flag.IntVar(&o.gate.Runs, "gate-runs", 20, "real gates of each case of the section gate, at most")
	flag.DurationVar(&o.gate.Time, "gate-time", 14*time.Minute, "for how long real gates run; the cases take turns")
	flag.IntVar(&o.gate.Gates, "gates", 1000, "simulated gates of each case")
	flag.Uint64Var(&o.gate.Seed, "gate-seed", 1, "seed of the simulation")
	flag.StringVar(&o.gate.Source, "gate-source", "cli/testdata/gate/work.c", "the program that gates judge")
	flag.Parse()
	if o.only != "" && !slices.Contains(sectionNames, o.only) {
		fail(fmt.Errorf("there is nothing called %q to measure", o.only))
	}
	// Servers end with the thread that starts them (PR_SET_PDEATHSIG), so this thread
	// must not end.
	runtime.LockOSThread()
	ctx, stop := signalled()
	defer stop()
	fail(measureAll(ctx, o))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type options struct {
	only, json, plots        string
	mirador, target          string
	rounds, requests, memory int
	documents                int
	least                    float64
	hold                     hold.Options
	probeRounds              int
	gate                     gate.Options
	progress                 *report.Progress
}

var sectionNames = []string{"gateway", "hold", "probe", "peers", "records", "many", "documents", "clients", "deliveries", "executions", "first", "large", "values", "sources", "structures", "shares", "truth", "syscalls", "gate", "plots"}

// wants reports whether to measure a section.
func (o options) wants(section string) bool {
	if section == "gate" || section == "large" {
		return o.only == section
	}
	if section == "plots" {
		return o.plots != "" && (o.only == "" || o.only == section)
	}
	return o.only == "" || o.only == section
}

// measureAll measures the sections and prints each table at once. If a section fails, it
// continues with the others.
func measureAll(ctx context.Context, o options) error {
	o.progress = report.NewProgress(os.Stderr)
	machine, err := report.ThisMachine()
	if err != nil {
		return err
	}
	all := report.Document{Begun: time.Now(), Machine: machine}
	fmt.Printf("On %s.\n", machine)
	var errs []error
	show := func(t *report.Table, err error) {
		o.progress.Say("")
		if t != nil && len(t.Rows) > 0 {
			t.Print(os.Stdout)
			all.Tables = append(all.Tables, t)
		}
		errs = append(errs, err)
	}
	if o.wants("gateway") {
		show(run(ctx, o))
	}
	if o.wants("documents") && ctx.Err() == nil {
		show(measureDocuments(ctx, o))
	}
	if o.wants("clients") && ctx.Err() == nil {
		show(measureClients(ctx, o))
	}
	if o.wants("deliveries") && ctx.Err() == nil {
		show(measureDeliveries(ctx, o))
	}
	if o.wants("executions") && ctx.Err() == nil {
		show(measureExecutions(ctx, o))
	}
	if o.wants("first") && ctx.Err() == nil {
		show(measureFirst(ctx, o))
	}
	if o.wants("large") && ctx.Err() == nil {
		show(measureLarge(ctx, o))
	}
	if o.wants("values") && ctx.Err() == nil {
		show(measureValues(ctx, o))
	}
	if o.wants("sources") && ctx.Err() == nil {
		show(measureSources(ctx, o))
	}
	if o.wants("structures") && ctx.Err() == nil {
		show(measureStructures(ctx, o))
	}
	if o.wants("hold") && ctx.Err() == nil {
		o.progress.Say("holding threads")
		show(hold.Run(ctx, o.hold))
	}
	if o.wants("shares") && ctx.Err() == nil {
		show(shares.Run(ctx, shares.Options{Mirador: o.mirador, Warden: []string{"/proc/self/exe", hold.WardenCommand}, Progress: o.progress}))
	}
	if o.wants("gate") && ctx.Err() == nil {
		o.gate.Mirador, o.gate.Progress = o.mirador, o.progress
		show(gate.Run(ctx, o.gate))
	}
	if ctx.Err() == nil {
		errs = append(errs, measureProbes(ctx, o, &all, show))
	}
	if o.json != "" {
		errs = append(errs, write(o.json, all))
	}
	return errors.Join(append(errs, ctx.Err())...)
}

// measureProbes measures the sections of package probe.
func measureProbes(ctx context.Context, o options, all *report.Document, show func(*report.Table, error)) error {
	type section struct {
		group   string
		measure func(*probe.Bench) (*report.Table, error)
	}
	sections := []section{
		{"probe", (*probe.Bench).Probe},
		{"probe", (*probe.Bench).Inactive},
		{"probe", (*probe.Bench).Threads},
		{"peers", (*probe.Bench).Peers},
		{"records", (*probe.Bench).Records},
		{"many", (*probe.Bench).Many},
		{"truth", (*probe.Bench).Truth},
		{"syscalls", (*probe.Bench).Syscalls},
	}
	sections = slices.DeleteFunc(sections, func(s section) bool { return !o.wants(s.group) })
	if len(sections) == 0 && !o.wants("plots") {
		return nil
	}
	b, err := probe.New(ctx, probe.Options{
		Sources: o.hold.Sources, Rounds: o.probeRounds, Progress: o.progress, Warden: []string{"/proc/self/exe", hold.WardenCommand},
	})
	if err != nil {
		return err
	}
	for _, section := range sections {
		if ctx.Err() == nil {
			show(section.measure(b))
		}
	}
	if o.wants("plots") && ctx.Err() == nil {
		all.Charts, err = b.Curves(fmt.Sprintf("%s, %s", all.Begun.Format(time.DateOnly), all.Machine))
		o.progress.Say("")
		if ctx.Err() == nil { // a run that was interrupted lacks lines of the charts
			err = errors.Join(err, draw(o.plots, all.Charts))
		}
	}
	return errors.Join(err, b.Close())
}

// draw writes each chart into a file of its own.
func draw(dir string, charts []plot.Chart) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, c := range charts {
		path := filepath.Join(dir, c.Name+".svg")
		file, err := os.Create(path)
		if err != nil {
			return err
		}
		if err := errors.Join(c.WriteSVG(file), file.Close()); err != nil {
			return err
		}
		fmt.Println("drawn:", path)
	}
	return nil
}

func write(path string, all report.Document) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(all.WriteJSON(file), file.Close())
}
