//go:build linux && amd64

package probe

import (
	"errors"
	"fmt"
	"time"

	"mirador/bench/report"
	"mirador/bench/subject"
)

// Inactive measures probes that were switched off: at once, while they still stand where
// they were, to be switched on again, and after a while, when the monitor has taken away
// what was off for a second.
func (b *Bench) Inactive() (*report.Table, error) {
	t := &report.Table{Name: "inactive", Title: "What a probe adds to a call that is switched off"}
	restore, err := onOneCPU()
	if err != nil {
		return t, err
	}
	for _, m := range b.monitors {
		if m.placement == trap {
			continue // there is nothing left of it
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

func (b *Bench) inactive(m *monitor, task subject.Task) (rows []report.Row, err error) {
	b.Progress.Say("inactive probes: %s, %s", m.placement, task)
	least := report.AtMost(1)
	soon := least
	if m.placement == inKernel {
		soon = none // the kernel's way to its programs is what costs
	}
	for _, mode := range modes {
		rows = append(rows, report.Row{What: fmt.Sprintf("%s, %s, off, %s", m.placement, task, mode), Unit: report.Nanoseconds, Goal: soon})
	}
	for _, mode := range modes {
		rows = append(rows, report.Row{What: fmt.Sprintf("%s, %s, off for a while, %s", m.placement, task, mode), Unit: report.Nanoseconds, Goal: least})
	}
	t, err := startOwn(b.program)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.End()) }()
	h, err := m.attach(t.PID())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.finish()) }()
	_, err = h.probe(t.Program, task)
	if why, missing := subject.WhyMissing(err); missing {
		for i := range rows {
			rows[i].Why = why
		}
		return rows, nil
	}
	if err != nil {
		return nil, err
	}
	e := newEntrant(subject.Contender{}, &subject.Standing{Target: t, Function: task.Function})
	if err := t.Pin(cpu); err != nil {
		return nil, err
	}
	for begin, round := time.Now(), 0; round <= b.Rounds && !b.spent(begin, idleBudget); round++ {
		if err := h.offAndOn(func() error { return e.turn(b.work(usual), round) }); err != nil {
			return nil, err
		}
	}
	later := newEntrant(e.Contender, e.Standing)
	err = h.offAndOn(func() error {
		time.Sleep(cleared)
		for begin, round := time.Now(), 0; round <= b.Rounds && !b.spent(begin, idleBudget); round++ {
			if err := later.turn(b.work(usual), round); err != nil {
				return err
			}
		}
		return nil
	})
	for i, mode := range modes {
		rows[i].Ours, rows[i+len(modes)].Ours = e.figures()[mode], later.figures()[mode]
	}
	return rows, err
}

// cleared is when the monitor has certainly taken away what is off.
const cleared = 2500 * time.Millisecond

const idleBudget = 2 * time.Second

// offAndOn does something while the tool's requests are switched off.
func (h *hand) offAndOn(do func() error) error {
	if _, err := h.do(": csr_disable([])"); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	_, err := h.do(": csr_enable([])")
	return err
}
