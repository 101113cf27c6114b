//go:build linux && amd64

package probe

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"mirador/omis"

	"mirador/bench/report"
	"mirador/bench/subject"
)

// most is the number of functions probed at a time.
const most = 10_000

// manyRounds is small, because planting takes long and varies little.
const manyRounds = 3

// The measured steps.
const (
	defining = "define"
	planting = "plant"
	reading  = "read"
	removing = "remove"
)

// manySteps collects, by step, its duration and the time for which a thread did not run.
type manySteps struct{ took, still map[string][]float64 }

func newManySteps() *manySteps {
	return &manySteps{make(map[string][]float64), make(map[string][]float64)}
}

// Many measures planting probes in ten thousand functions, reading and removing them, and
// how long a busy thread of the program is stopped meanwhile.
func (b *Bench) Many() (*report.Table, error) {
	t := &report.Table{Name: "many", Title: fmt.Sprintf("%d functions counted", most)}
	t.Note("Still: total time, measured by a busy thread of the program itself, in which the thread was runnable but stopped.")
	reference, err := b.repeat(bareEBPF, b.manyBare)
	if err != nil {
		return t, err
	}
	for _, m := range b.monitors {
		if m.placement == trap {
			continue // not suited for so many functions
		}
		steps, err := b.repeat(m.placement, func(s *manySteps) error { return b.manyOurs(m, s) })
		if why, missing := subject.WhyMissing(err); missing {
			t.Add(report.Row{What: m.placement, Why: why})
			continue
		}
		if err != nil {
			return t, fmt.Errorf("%d functions, %s: %w", most, m.placement, err)
		}
		steps.rows(t, m.placement, reference)
	}
	return t, b.ctx.Err()
}

func (b *Bench) repeat(name string, once func(*manySteps) error) (*manySteps, error) {
	s := newManySteps()
	for round := range manyRounds {
		if b.ctx.Err() != nil {
			return s, b.ctx.Err()
		}
		b.Progress.Say("%d functions: %s, round %d of %d", most, name, round+1, manyRounds)
		if err := once(s); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (s *manySteps) rows(t *report.Table, name string, reference *manySteps) {
	second, still := report.AtMost(float64(time.Second)), report.AtMost(float64(50*time.Millisecond))
	goals := map[string]report.Goal{planting: second, removing: second, reading: report.AtMost(float64(5 * time.Millisecond))}
	for _, step := range []string{defining, planting, reading, removing} {
		row := report.Row{What: name + ", " + step, Unit: report.Nanoseconds, Ours: report.Summary(s.took[step]), Goal: goals[step]}
		if other := reference.took[step]; len(other) > 0 {
			sum := report.Summary(other)
			row.Than, row.Reference = bareEBPF, &sum
		}
		t.Add(row)
		if len(s.still[step]) > 0 {
			t.Add(report.Row{What: name + ", " + step + ", still", Unit: report.Nanoseconds, Ours: report.Summary(s.still[step]), Goal: still})
		}
	}
}

// watched measures a step while a thread of the target watches itself. The monitor runs
// on the other CPUs, if there are any.
func (s *manySteps) watched(t *subject.Target, step string, do func() error) error {
	if _, err := t.Ask(0, "watch %d", cpu); err != nil {
		return err
	}
	begin := time.Now()
	err := do()
	took := time.Since(begin)
	gaps, asked := t.Ask(3, "watched")
	if err := errors.Join(err, asked); err != nil {
		return err
	}
	s.took[step] = append(s.took[step], float64(took))
	s.still[step] = append(s.still[step], gaps[1])
	return nil
}

// manyBare sets one eBPF program at all functions.
func (b *Bench) manyBare(s *manySteps) error {
	t, err := b.many.StartCopy()
	if err != nil {
		return err
	}
	var list []uprobe
	for i := range most {
		list = append(list, uprobe{b.bare.count, t.Entry(fmt.Sprint("f_", i)), false})
	}
	var remove func() error
	err = s.watched(t, planting, func() (err error) {
		remove, err = set(t, list...)
		return err
	})
	if err == nil {
		err = s.watched(t, removing, remove)
	}
	return errors.Join(err, t.End())
}

// readings is the number of times that all counters are read. The first time takes
// longer, and any may coincide with a garbage collection.
const readings = 5

// manyOurs makes the monitor count each function by a counter of its own.
func (b *Bench) manyOurs(m *rig, s *manySteps) (err error) {
	t, err := b.many.StartCopy()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.End()) }()
	h, err := m.attach(t.PID())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.finish()) }()
	if err := m.tries(t); err != nil {
		return err
	}
	begin := time.Now()
	requests, err := h.defineMany(t, most)
	if err != nil {
		return err
	}
	s.took[defining] = append(s.took[defining], float64(time.Since(begin)))
	if err := s.watched(t, planting, func() error { return h.plant(requests) }); err != nil {
		return err
	}
	if _, err := t.Ask(1, "call %d", most); err != nil {
		return err
	}
	for range readings {
		if err := s.watched(t, reading, h.readMany); err != nil {
			return err
		}
	}
	return s.watched(t, removing, func() error { _, err := h.do(": csr_delete([])"); return err })
}

// tries checks with one function that the placement accepts the target: otherwise the
// engine would plant all functions by breakpoints, which is not suited for so many.
func (m *rig) tries(t *subject.Target) error {
	h, err := m.attach(t.PID())
	if err != nil {
		return err
	}
	_, err = h.probe(t.Program, subject.Task{Function: "f_0"})
	return errors.Join(err, h.finish())
}

// defineMany defines requests for the first functions, each with a counter.
func (h *attachedTool) defineMany(t *subject.Target, count int) (requests []omis.Token, err error) {
	reply, err := h.do("%s", ":"+strings.Repeat(" pa_counter_create()", count))
	if err != nil {
		return nil, err
	}
	for i := range count {
		counter, err := reply.Token(i + 1)
		if err != nil {
			return nil, err
		}
		request, err := h.define("thread_reached_addr([],%#x) : pa_counter_add([%s],1)", t.Entry(fmt.Sprint("f_", i)), counter)
		if err != nil {
			return nil, err
		}
		requests = append(requests, request)
	}
	return requests, nil
}

// plant enables all requests. If a placement does not take all of them, the engine tries
// breakpoints for the rest, and these are too few.
func (h *attachedTool) plant(requests []omis.Token) error {
	if _, err := h.do(": csr_enable([])"); err != nil {
		why := err.Error()
		if x, err := h.State(requests[len(requests)-1]); err == nil && x.Placement.Why != "" {
			why = x.Placement.Why
		}
		return &subject.Missing{Why: why}
	}
	return h.placed(requests[len(requests)-1:])
}

// readMany reads all counters. It fails unless each of them has counted one call.
func (h *attachedTool) readMany() error {
	reply, err := h.do(": pa_counter_read([])")
	if err != nil {
		return err
	}
	read := 0
	for _, result := range reply[1] { // counters with equal rows share a result
		read += len(result.Objects)
		if len(result.Values) < 2 || len(result.Values[1].List) < 3 {
			return fmt.Errorf("%d counters have no rows", len(result.Objects))
		}
		if n, _ := result.Values[1].List[2].Int64(); n != 1 {
			return fmt.Errorf("%d counters have counted %d calls, not one", len(result.Objects), n)
		}
	}
	if read != most {
		return fmt.Errorf("%d counters were read, not %d", read, most)
	}
	return nil
}
