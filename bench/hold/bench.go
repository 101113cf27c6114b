//go:build linux && amd64

package hold

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"mirador/bench/report"
	"mirador/bench/subject"
)

// Options configure a run.
type Options struct {
	Sources string // directory of the reference programs
	Rounds  int
	Scale   int // divisor of the numbers of hits
}

// bench is one run.
type bench struct {
	Options
	dir     string // of the programs
	dlv     string // Delve's command
	noDelve error  // why Delve is missing
	table   report.Table
	missing []string // references that are missing, and why
	errs    []error  // of steps; a failed step does not stop the run
}

func (b *bench) program(name string) string { return filepath.Join(b.dir, name) }

func (b *bench) note(err error) {
	if err != nil {
		b.errs = append(b.errs, err)
	}
}

// Run measures everything in this package.
func Run(ctx context.Context, o Options) (*report.Table, error) {
	dir, err := os.MkdirTemp("", "mirador-bench-hold-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	b := &bench{Options: o, dir: dir}
	b.table.Name, b.table.Title = "hold", "What it costs to hold a thread, to stop and to ask about processes"
	if err := compile(ctx, o.Sources, dir); err != nil {
		return nil, err
	}
	b.dlv, b.noDelve = obtainDelve(ctx, dir)
	restore, err := subject.OnCPU(0)
	if err != nil {
		return nil, err
	}
	steps := []func() error{b.hits, b.print}
	for _, step := range steps {
		if ctx.Err() == nil {
			b.note(step())
		}
	}
	b.note(restore())
	for _, step := range []func() error{b.crowd, b.stops, b.processes} {
		if ctx.Err() == nil {
			b.note(step())
		}
	}
	for _, line := range b.missing {
		b.table.Note("%s", line)
	}
	return &b.table, errors.Join(append(b.errs, ctx.Err())...)
}

// stat summarises rounds.
type stat struct{ least, median time.Duration }

func summary(rounds []time.Duration) stat {
	s := slices.Sorted(slices.Values(rounds))
	if len(s) == 0 {
		return stat{}
	}
	return stat{s[0], s[len(s)/2]}
}

// figures converts s for the table.
func (s stat) figures() report.Stat {
	return report.Stat{Least: float64(s.least), Median: float64(s.median)}
}

// add adds a row that compares two figures.
func (b *bench) add(what, than string, ours, reference stat, goal report.Goal) {
	other := reference.figures()
	b.table.Add(report.Row{What: what, Unit: report.Nanoseconds, Ours: ours.figures(), Than: than, Reference: &other, Goal: goal})
}

// alone adds a row without a reference.
func (b *bench) alone(what string, ours stat, goal report.Goal) {
	b.table.Add(report.Row{What: what, Unit: report.Nanoseconds, Ours: ours.figures(), Goal: goal})
}

// less returns the time that a watched call takes beyond an unwatched one.
func (s stat) less(bare stat) stat { return stat{s.least - bare.least, s.median - bare.least} }

// timed measures do in each of several rounds.
func timed(rounds int, do func() error) (stat, error) {
	var all []time.Duration
	for range rounds {
		d, err := duration(do)
		if err != nil {
			return stat{}, err
		}
		all = append(all, d)
	}
	return summary(all), nil
}

func duration(do func() error) (time.Duration, error) {
	begin := time.Now()
	err := do()
	return time.Since(begin), err
}
