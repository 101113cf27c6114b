//go:build linux && amd64

package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// Options are what the benchmark can be told.
type Options struct {
	Sources string // the directory of the reference programs
	Rounds  int
}

// subject is what is measured: a function, counted or timed.
type subject struct {
	what     string
	function string
	timed    bool
}

var subjects = []subject{
	{"count, at a push", "pushed", false},
	{"count, at a mov", "moved", false},
	{"time, from a push to ret", "pushed", true},
	{"time, from a mov to ret", "moved", true},
}

// contender is a way to probe. It stands from start until stop is called.
type contender struct {
	name  string
	start func(t *target, s subject) (stop func() error, err error)
	suits func(s subject) bool // nil: all
}

// Run measures, and prints a table.
func Run(ctx context.Context, o Options) error {
	dir, err := os.MkdirTemp("", "mirador-bench-probe-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "probe")
	if err := compile(ctx, filepath.Join(o.Sources, "probe.c"), path); err != nil {
		return err
	}
	t, err := startTarget(path)
	if err != nil {
		return err
	}
	defer t.end()
	if err := pin(t.pid()); err != nil {
		return err
	}
	all, done, err := contenders()
	if err != nil {
		return err
	}
	var errs []error
	var rows []row
	for _, s := range subjects {
		if ctx.Err() != nil {
			break
		}
		found, err := measure(ctx, t, s, all, o.Rounds)
		rows = append(rows, found...)
		errs = append(errs, err)
	}
	printTable(os.Stdout, rows)
	return errors.Join(append(errs, done(), ctx.Err())...)
}

// pin keeps the target on one CPU.
func pin(pid int) error {
	var one unix.CPUSet
	one.Set(0)
	return unix.SchedSetaffinity(pid, &one)
}

// measure lets the contenders take turns.
func measure(ctx context.Context, t *target, s subject, all []contender, rounds int) ([]row, error) {
	added := make([][]float64, len(all))
	for round := range rounds + 1 {
		for i, c := range all {
			if c.suits != nil && !c.suits(s) || ctx.Err() != nil {
				continue
			}
			ns, err := turn(t, s, c)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", s.what, c.name, err)
			}
			if round > 0 { // the first warms up
				added[i] = append(added[i], ns)
			}
		}
	}
	var rows []row
	for i, c := range all {
		if len(added[i]) > 0 {
			rows = append(rows, newRow(s.what, c.name, added[i], added[0]))
		}
	}
	return rows, nil
}

// A turn consists of batches that are short enough to be rarely interrupted; the
// quickest of them counts.
const (
	batches  = 20
	batch    = 1e6 // nanoseconds
	warmUp   = 50  // calls, in which is made what is made once: rows, copies of code
	mostEach = 20_000
)

// quickest is how long a call of a function takes.
func quickest(t *target, function string) (float64, error) {
	first, err := t.calls(function, warmUp)
	if err != nil {
		return 0, err
	}
	n := min(mostEach, max(10, int(batch/first)))
	least := first
	for range batches {
		ns, err := t.calls(function, n)
		if err != nil {
			return 0, err
		}
		least = min(least, ns)
	}
	return least, nil
}

// turn measures what a contender adds to a call.
func turn(t *target, s subject, c contender) (float64, error) {
	bare, err := quickest(t, s.function)
	if err != nil {
		return 0, err
	}
	stop, err := c.start(t, s)
	if err != nil {
		return 0, err
	}
	probed, err := quickest(t, s.function)
	return probed - bare, errors.Join(err, stop())
}

// median of some figures.
func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}
