//go:build linux && amd64

package probe

import (
	"context"
	"errors"
	"os"
	"time"

	"mirador/bench/peers"
	"mirador/bench/report"
	"mirador/bench/subject"
)

// Options configure the benchmark.
type Options struct {
	Sources  string // directory of the reference programs
	Rounds   int
	Warden   []string // the command of a warden
	Progress *report.Progress
}

// Bench measures section by section. One goroutine calls its methods.
type Bench struct {
	Options
	ctx      context.Context
	dir      string
	program  *subject.Program // bench/reference/subject.c
	many     *subject.Program // bench/reference/many.c
	peers    *peers.Peers
	bare     *bare
	monitors []*rig
	rate     float64 // nanoseconds that a round of a function's work takes
}

// New compiles the programs to measure, and opens a monitor for each placement.
func New(ctx context.Context, o Options) (*Bench, error) {
	dir, err := os.MkdirTemp("", "mirador-bench-probe-")
	if err != nil {
		return nil, err
	}
	b := &Bench{Options: o, ctx: ctx, dir: dir}
	if err := b.open(); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func (b *Bench) open() (err error) {
	if b.program, err = subject.Compile(b.ctx, b.Sources, "subject", b.dir); err != nil {
		return err
	}
	if b.many, err = subject.Compile(b.ctx, b.Sources, "many", b.dir); err != nil {
		return err
	}
	b.peers = &peers.Peers{Program: b.program, Dir: b.dir}
	b.peers.Traced, b.peers.Untraced = peers.CompileTraced(b.ctx, b.Sources, b.dir)
	if b.bare, err = newBare(); err != nil {
		return err
	}
	for _, placement := range placements {
		m, err := openRig(placement, b.Warden)
		if err != nil {
			return err
		}
		b.monitors = append(b.monitors, m)
	}
	return b.findRate()
}

// Close releases everything.
func (b *Bench) Close() error {
	var errs []error
	for _, m := range b.monitors {
		errs = append(errs, m.close())
	}
	if b.bare != nil {
		errs = append(errs, b.bare.close())
	}
	return errors.Join(append(errs, os.RemoveAll(b.dir))...)
}

// findRate measures the time of a round of work on this machine.
func (b *Bench) findRate() error {
	t, err := b.program.StartCopy()
	if err != nil {
		return err
	}
	const rounds = 10_000
	cost, err := t.Ask(2, "cost pushed lb %d 20", rounds)
	if err == nil {
		b.rate = min(cost[0], cost[1]) / rounds
	}
	return errors.Join(err, t.End())
}

// work returns the number of rounds that take the given time.
func (b *Bench) work(d time.Duration) int { return max(1, int(float64(d)/b.rate+0.5)) }

// usual is the length of the function that is measured.
const usual = 46 * time.Nanosecond

// cpu is the CPU of all measurements that do not need several.
const cpu = 0

// spent reports whether the time is over, or the benchmark was interrupted.
func (b *Bench) spent(begin time.Time, budget time.Duration) bool {
	return b.ctx.Err() != nil || time.Since(begin) > budget
}
