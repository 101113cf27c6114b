//go:build linux && amd64

package probe

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"mirador/bench/peers"
	"mirador/bench/plot"
	"mirador/bench/subject"
)

// Curves measures the cost of a hit by the number of probes, of threads and of hits per
// second.
func (b *Bench) Curves(note string) ([]plot.Chart, error) {
	var charts []plot.Chart
	var errs []error
	for _, measure := range []func() (plot.Chart, error){b.byProbes, b.byThreads, b.byRate} {
		if b.ctx.Err() != nil {
			break
		}
		c, err := measure()
		c.Note = note
		charts, errs = append(charts, c), append(errs, err)
	}
	return charts, errors.Join(append(errs, b.ctx.Err())...)
}

// newLine gives each contender the same colour in all charts.
func newLine(name string) plot.Series {
	order := []string{inCode, inKernel, trap, bareEBPF, "gdb, breakpoint", "lttng-ust, compiled in", "bpftrace"}
	return plot.Series{Name: name, Colour: max(slices.Index(order, name), 0)}
}

// perHit is the axis of costs. A smaller cost is noise.
func perHit() plot.Axis {
	return plot.Axis{Label: "added to a call", Kind: plot.Nanoseconds, Least: 0.1}
}

// tries is the number of measurements of each point; the least counts.
const tries = 3

// byProbes calls functions in turn, all of them probed.
func (b *Bench) byProbes() (plot.Chart, error) {
	c := plot.Chart{Name: "probes", Title: "Counting a call, by the number of probed functions that are called in turn", X: plot.Axis{Label: "probed functions"}, Y: perHit()}
	type way struct {
		name string
		most int
		plot func(count int) (*subject.Standing, error)
	}
	ways := []way{
		{bareEBPF, most, b.bareAt},
		{"bpftrace", peers.BpftraceMost, func(count int) (*subject.Standing, error) { return peers.BpftraceMany(b.many, named(count)) }},
	}
	for _, m := range b.monitors {
		w := way{m.placement, most, func(count int) (*subject.Standing, error) { return b.oursAt(m, count) }}
		if m.placement == trap {
			w.most = trapMost
		}
		ways = append(ways, w)
	}
	for _, w := range ways {
		line := newLine(w.name)
		for count := 1; count <= w.most && b.ctx.Err() == nil; count *= 10 {
			b.Progress.Say("plots: %d functions, %s", count, w.name)
			ns, err := added(func() (*subject.Standing, error) { return w.plot(count) }, "cost %d 5", count)
			if _, missing := subject.WhyMissing(err); missing {
				break
			}
			if err != nil {
				return c, fmt.Errorf("%d functions, %s: %w", count, w.name, err)
			}
			line.Points = append(line.Points, plot.Point{X: float64(count), Y: ns})
		}
		c.Series = append(c.Series, line)
	}
	return c, nil
}

// trapMost is the number of functions with breakpoints at once.
const trapMost = 100

func named(count int) (list []string) {
	for i := range count {
		list = append(list, fmt.Sprint("f_", i))
	}
	return list
}

// added starts a contender, and measures what it adds to a call.
func added(start func() (*subject.Standing, error), format string, args ...any) (ns float64, err error) {
	s, err := start()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	if err := s.Target.Pin(cpu); err != nil {
		return 0, err
	}
	var p pairs
	for range tries {
		got, err := s.Target.Ask(2, format, args...)
		if err != nil {
			return 0, err
		}
		p.probed, p.bare = append(p.probed, got[0]), append(p.bare, got[1])
	}
	return p.added().Least, nil
}

func (b *Bench) bareAt(count int) (*subject.Standing, error) {
	t, err := b.many.StartCopy()
	if err != nil {
		return nil, err
	}
	var list []uprobe
	for _, f := range named(count) {
		list = append(list, uprobe{b.bare.count, t.Entry(f), false})
	}
	remove, err := set(t, list...)
	if err != nil {
		return nil, errors.Join(err, t.End())
	}
	return &subject.Standing{Target: t, Stop: func() error { return errors.Join(remove(), t.End()) }}, nil
}

func (b *Bench) oursAt(m *rig, count int) (*subject.Standing, error) {
	t, err := b.many.StartCopy()
	if err != nil {
		return nil, err
	}
	h, err := m.attach(t.PID())
	if err != nil {
		return nil, errors.Join(err, t.End())
	}
	s := &subject.Standing{Target: t, Stop: func() error { return errors.Join(h.finish(), t.End()) }}
	requests, err := h.defineMany(t, count)
	if err == nil {
		err = h.plant(requests)
	}
	if err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// among returns the contenders of a plot.
func (b *Bench) among(names ...string) (list []subject.Contender) {
	all := append(append(b.ours(), b.references()...), b.peers.Contenders()...)
	for _, name := range names {
		for _, c := range all {
			if c.Name == name {
				list = append(list, c)
			}
		}
	}
	return list
}

// byThreads lets several threads call one probed function in a loop.
func (b *Bench) byThreads() (plot.Chart, error) {
	c := plot.Chart{Name: "threads", Title: "Counting a call, by the number of threads that hammer one probe", X: plot.Axis{Label: "threads"}, Y: perHit()}
	for _, one := range b.among(inCode, inKernel, trap, bareEBPF, "bpftrace", "lttng-ust, compiled in") {
		line, err := b.curve(one, "threads", func(s *subject.Standing) (points []plot.Point, err error) {
			for threads := 1; threads <= crowded; threads *= 2 {
				var p pairs
				for range tries {
					if err := p.measure(s, threads, one.Slow); err != nil {
						return nil, err
					}
				}
				points = append(points, plot.Point{X: float64(threads), Y: p.added().Least})
			}
			return points, nil
		})
		if err != nil {
			return c, err
		}
		c.Series = append(c.Series, line)
	}
	return c, nil
}

// byRate adds other work between calls, the less the more frequent the calls are.
func (b *Bench) byRate() (plot.Chart, error) {
	c := plot.Chart{
		Name: "rate", Title: "The part of its time that counting takes of a program, by the calls it makes",
		X: plot.Axis{Label: "calls in a second of the program's own time"}, Y: plot.Axis{Label: "of its time", Kind: plot.Shares, Least: 1e-4},
	}
	for _, one := range b.among(inCode, inKernel, trap, "bpftrace", "gdb, breakpoint", "lttng-ust, compiled in") {
		line, err := b.curve(one, "rates", func(s *subject.Standing) (points []plot.Point, err error) {
			if err := s.Target.Pin(cpu); err != nil {
				return nil, err
			}
			for every := slowest; every >= quickest; every /= 10 {
				var p pairs
				for range tries {
					got, err := s.Target.Ask(2, "mix %s 1 %d 20", s.Function, b.work(every))
					if err != nil {
						return nil, err
					}
					p.probed, p.bare = append(p.probed, got[0]), append(p.bare, got[1])
				}
				probed, own := slices.Min(p.probed), slices.Min(p.bare)
				points = append(points, plot.Point{X: float64(time.Second) / own, Y: (probed - own) / probed})
			}
			return points, nil
		})
		if err != nil {
			return c, err
		}
		c.Series = append(c.Series, line)
	}
	return c, nil
}

// Intervals between calls.
const (
	slowest  = time.Millisecond
	quickest = 100 * time.Nanosecond
)

// curve measures one contender, unless it is missing.
func (b *Bench) curve(one subject.Contender, what string, measure func(*subject.Standing) ([]plot.Point, error)) (line plot.Series, err error) {
	line = newLine(one.Name)
	b.Progress.Say("plots: %s, %s", what, one.Name)
	s, err := one.Start(countPush)
	if _, missing := subject.WhyMissing(err); missing || b.ctx.Err() != nil {
		return line, b.ctx.Err()
	}
	if err != nil {
		return line, err
	}
	line.Points, err = measure(s)
	return line, errors.Join(err, s.Stop())
}
