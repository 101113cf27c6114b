//go:build linux && amd64

package probe

import (
	"errors"
	"fmt"
	"time"

	"mirador/bench/report"
	"mirador/bench/subject"
)

// Inactive measures probes that were switched off: first at once, while they are still in
// place to be switched on again, and then later, after the monitor has removed the probes
// that were off for a second.
func (b *Bench) Inactive() (*report.Table, error) {
	t := &report.Table{Name: "inactive", Title: "What a probe adds to a call that is switched off"}
	restore, err := subject.OnCPU(cpu)
	if err != nil {
		return t, err
	}
	for _, m := range b.monitors {
		if m.placement == trap {
			continue // its breakpoints are removed at once
		}
		for _, task := range []subject.Task{countPush, timePush} {
			rows, one := b.inactive(m, task)
			for _, row := range rows {
				t.Add(row)
			}
			err = errors.Join(err, one)
		}
	}
	return t, errors.Join(err, restore(), b.ctx.Err())
}

// idleStarts is the number of starts of the program: its position in memory makes a
// greater difference than an inactive probe.
const idleStarts = 3

func (b *Bench) inactive(m *rig, task subject.Task) ([]report.Row, error) {
	b.Progress.Say("inactive probes: %s, %s", m.placement, task)
	rows := inactiveRows(m, task)
	soon, later := newEntrant(subject.Contender{}, nil), newEntrant(subject.Contender{}, nil)
	for range idleStarts {
		err := b.measureInactive(m, task, soon, later)
		if why, missing := subject.WhyMissing(err); missing {
			for i := range rows {
				rows[i].Why = why
			}
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
	}
	for i, mode := range modes {
		rows[i].Ours, rows[i+len(modes)].Ours = soon.figures()[mode], later.figures()[mode]
	}
	return rows, nil
}

// inactiveRows returns the rows of a task, without figures: at once, and later.
func inactiveRows(m *rig, task subject.Task) (rows []report.Row) {
	least := report.AtMost(1)
	soon := least
	if m.placement == inKernel {
		soon = none // the kernel still enters its program
	}
	for _, mode := range modes {
		rows = append(rows, report.Row{What: fmt.Sprintf("%s, %s, off, %s", m.placement, task, mode), Unit: report.Nanoseconds, Goal: soon})
	}
	for _, mode := range modes {
		rows = append(rows, report.Row{What: fmt.Sprintf("%s, %s, off for a while, %s", m.placement, task, mode), Unit: report.Nanoseconds, Goal: least})
	}
	return rows
}

// measureInactive adds the figures of one start of the program.
func (b *Bench) measureInactive(m *rig, task subject.Task, soon, later *entrant) (err error) {
	t, err := b.program.StartCopy()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.End()) }()
	h, err := m.attach(t.PID())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.finish()) }()
	if _, err := h.probe(t.Program, task); err != nil {
		return err
	}
	if err := t.Pin(cpu); err != nil {
		return err
	}
	standing := &subject.Standing{Target: t, Function: task.Function}
	soon.Standing, later.Standing = standing, standing
	for begin, round := time.Now(), 0; b.goesOn(begin, round); round++ {
		if err := h.offAndOn(func() error { return soon.turn(b.work(usual), round) }); err != nil {
			return err
		}
	}
	return h.offAndOn(func() error {
		time.Sleep(cleared)
		for begin, round := time.Now(), 0; b.goesOn(begin, round); round++ {
			if err := later.turn(b.work(usual), round); err != nil {
				return err
			}
		}
		return nil
	})
}

// goesOn reports whether there is another round after one start. The first one warms up.
func (b *Bench) goesOn(begin time.Time, round int) bool {
	return round <= max(1, b.Rounds/idleStarts) && !b.spent(begin, idleBudget)
}

// cleared is the time after which the monitor has certainly removed inactive probes.
const cleared = 2500 * time.Millisecond

const idleBudget = 2 * time.Second

// offAndOn calls do while the tool's requests are disabled.
func (h *attachedTool) offAndOn(do func() error) error {
	if _, err := h.do(": csr_disable([])"); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	_, err := h.do(": csr_enable([])")
	return err
}
