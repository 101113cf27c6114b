//go:build linux && amd64

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"mirador/torture/sweep"
)

func main() {
	p := plan{progress: os.Stdout}
	var programs string
	flag.StringVar(&p.mirador, "mirador", "bin/mirador", "the gateway's program")
	flag.DurationVar(&p.time, "time", 10*time.Minute, "how long")
	flag.IntVar(&p.kills, "kills", 0, "how often to kill the gateway")
	flag.StringVar(&p.placements, "placements", "", "where probes may run, as serve takes it; \"\": anywhere")
	flag.StringVar(&programs, "programs", "", "a list of bash, python, c++, c, go, rust; \"\": all")
	flag.IntVar(&p.most, "most", 300, "probes at a time in a program, besides the probes whose counts are compared")
	places := flag.Int("places", 0, "in place of all this, plant so many probes in generated functions, one at each instruction, in every placement (see package sweep), for -time at most")
	ways := flag.String("ways", strings.Join(sweep.Ways, ","), "with -places: the placements, and ways to hold threads")
	flag.Uint64Var(&p.seed, "seed", rand.Uint64N(1e6), "of the random numbers")
	flag.Parse()
	// Helpers of the monitor are started in another directory.
	if at, err := filepath.Abs(p.mirador); err == nil {
		p.mirador = at
	}
	if programs != "" {
		p.programs = strings.Split(programs, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	report := p.report
	if *places > 0 {
		report = func(ctx context.Context) error { return p.sweep(ctx, *places, strings.Split(*ways, ",")) }
	}
	if err := report(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "torture:", err)
		os.Exit(1)
	}
}

// report runs the plan and prints the results.
func (p plan) report(ctx context.Context) error {
	fmt.Fprintf(p.progress, "torturing for %v with seed %d\n", p.time, p.seed)
	outcomes, kills, err := p.run(ctx)
	table(p.progress, outcomes, kills)
	if err != nil {
		return err
	}
	for _, o := range outcomes {
		if o.err != nil {
			return errors.New("not all programs passed")
		}
	}
	return nil
}

// sweep runs package sweep with the given number of places.
func (p plan) sweep(ctx context.Context, places int, ways []string) error {
	fmt.Fprintf(p.progress, "sweeping %d places with seed %d\n", places, p.seed)
	s := sweep.Plan{Warden: []string{p.mirador, "warden"}, Ways: ways, Places: places, Time: p.time, Seed: p.seed, Progress: p.progress}
	outcomes, err := s.Run(ctx)
	sweep.Print(p.progress, outcomes)
	for _, o := range outcomes {
		if len(o.Wrong) > 0 {
			err = errors.Join(err, fmt.Errorf("%s: %d programs failed", o.Way, len(o.Wrong)))
		}
	}
	return err
}
