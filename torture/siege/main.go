//go:build linux && amd64

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// siege is one run.
type siege struct {
	mirador             string // path of the gateway's program
	probes, requests    int    // of the first phase
	documents, notation int    // numbers of mutated MIR documents and OMIS requests
	parallel            int
	seed                uint64
	progress            io.Writer

	program string // path of the target's program
	gateway *gateway
	pids    [targets]int // pids of an attack's targets
}

func main() {
	s := siege{progress: os.Stdout}
	flag.StringVar(&s.mirador, "mirador", "bin/mirador", "the gateway's program")
	flag.IntVar(&s.probes, "probes", 10_000, "how many probes a user sets")
	flag.IntVar(&s.requests, "requests", 100_000, "how many requests the user sends about them")
	flag.IntVar(&s.documents, "documents", 1_000_000, "how many mutated MIR documents to send")
	flag.IntVar(&s.notation, "omis", 1_000_000, "how many mutated OMIS requests to send")
	flag.IntVar(&s.parallel, "parallel", 4, "how many requests to send at a time")
	flag.Uint64Var(&s.seed, "seed", rand.Uint64N(1e6), "of the random numbers")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := s.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "siege:", err)
		os.Exit(1)
	}
}

// say prints a line about what was done.
func (s *siege) say(format string, args ...any) { fmt.Fprintf(s.progress, format+"\n", args...) }

// run runs all phases with one gateway.
func (s *siege) run(ctx context.Context) (err error) {
	if os.Geteuid() != 0 {
		return errors.New("siege acts as two users, so root must start it")
	}
	s.say("besieging with seed %d", s.seed)
	dir, err := os.MkdirTemp("", "mirador-siege-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // it contains the user's program
		return err
	}
	if s.program, err = compile(dir); err != nil {
		return err
	}
	if s.mirador, err = filepath.Abs(s.mirador); err != nil {
		return err
	}
	if s.gateway, err = startGateway(s.mirador, dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.gateway.end()) }()
	for _, phase := range []struct {
		wanted int
		run    func(context.Context) error
	}{
		{s.probes, s.crowd}, {s.documents, s.malformed}, {s.notation, s.malicious},
	} {
		if phase.wanted == 0 {
			continue
		}
		if err := phase.run(ctx); err != nil {
			return fmt.Errorf("%w\nthe gateway's log ends with:\n%s", err, s.gateway.logged())
		}
	}
	return nil
}
