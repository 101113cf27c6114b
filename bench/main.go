// Bench measures what the gateway adds to a request: POST /mir with a VALUE
// request of 1 KiB, through the whole pipeline to the monitor and back, against a
// bare chi handler that reads the same body and writes the same reply.
//
// Both servers are processes of their own with GOMAXPROCS=1, pinned to one CPU;
// the client, which is the same for both, is pinned to another where there is
// one. Rounds alternate, and are short: what else the machine has to do changes
// little from one to the next. The median ratio is that of the ratios of
// neighbouring rounds. The CPU time of the servers is measured too, since it does
// not depend on the client.
//
// It measures too what it costs to hold a thread, and what else tools wait for
// (package hold), and what probes cost that count and time functions (package probe).
//
// It is a program for people and for the Makefile; nothing imports it.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"

	"mirador/bench/hold"
	"mirador/bench/probe"
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
	var h hold.Options
	only := flag.String("only", "", "what to measure: gateway, hold or probe; all if empty")
	flag.StringVar(&o.mirador, "mirador", "bin/mirador", "the program to measure")
	flag.StringVar(&o.target, "target", "bin/mmul", "the target to measure it with")
	flag.IntVar(&o.rounds, "rounds", 41, "rounds of each server")
	flag.IntVar(&o.requests, "requests", 1000, "requests of a round")
	flag.IntVar(&o.memory, "memory", 100_000, "requests over which the memory is watched")
	flag.Float64Var(&o.least, "least", 0, "fail if a ratio is lower than this")
	flag.StringVar(&h.Sources, "references", "bench/reference", "the directory of the reference programs")
	flag.IntVar(&h.Rounds, "hold-rounds", 15, "rounds of each way to hold a thread")
	flag.IntVar(&h.Scale, "hold-scale", 1, "what the numbers of hits are divided by")
	probeRounds := flag.Int("probe-rounds", 15, "rounds of each way to probe")
	flag.Parse()
	// Servers are to end with the thread that starts them (PR_SET_PDEATHSIG):
	// that must be one that lasts.
	runtime.LockOSThread()
	ctx, stop := signalled()
	defer stop()
	switch *only {
	case "", "gateway", "hold", "probe":
	default:
		fail(fmt.Errorf("there is nothing called %q to measure", *only))
	}
	if *only == "" || *only == "gateway" {
		fail(run(ctx, o))
	}
	if *only == "" || *only == "hold" {
		fail(hold.Run(ctx, h))
	}
	if *only == "" || *only == "probe" {
		fail(probe.Run(ctx, probe.Options{Sources: h.Sources, Rounds: *probeRounds}))
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type options struct {
	mirador, target          string
	rounds, requests, memory int
	least                    float64
}
