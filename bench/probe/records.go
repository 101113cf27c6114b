//go:build linux && amd64

package probe

import (
	"errors"
	"fmt"

	"mirador/omis"

	"mirador/bench/report"
	"mirador/bench/subject"
)

// Services for more than sums: a histogram of all times, and a record of each hit.
const (
	spread     = `pa_timer_create4("ordered",1,"histogram")`
	spreadFast = `pa_timer_create4("fast",1,"histogram")`
	records    = `pa_trace_create(8192)` // newest records of each thread

	inCodeSpread     = inCode + ", histogram"
	inCodeSpreadFast = inCodeFast + ", histogram"
	inCodeRecords    = inCode + ", a record each"
	inKernelRecords  = inKernel + ", a record each"
)

// keeping returns the contenders that keep more than sums.
func (b *Bench) keeping() (list []subject.Contender) {
	for _, m := range b.monitors {
		add := func(name string, suits func(subject.Task) string, start func(subject.Task) (*subject.Standing, error)) {
			list = append(list, subject.Contender{Name: name, Suits: suits, Start: start})
		}
		recording := func(t subject.Task) (*subject.Standing, error) { return m.startRecords(b.program, t) }
		switch m.placement {
		case inCode:
			add(inCodeSpread, onlyTimes, func(t subject.Task) (*subject.Standing, error) { return m.start(b.program, t, spread) })
			add(inCodeSpreadFast, onlyTimes, func(t subject.Task) (*subject.Standing, error) { return m.start(b.program, t, spreadFast) })
			add(inCodeRecords, nil, recording)
		case inKernel:
			add(inKernelRecords, nil, recording)
		}
	}
	return list
}

// keepingPairings compares them with contenders that keep only sums, and with tools that
// record every hit. A timed task has a record at both ends.
func keepingPairings() []pairing {
	just := report.Beside()
	return []pairing{
		{timePush, inCodeSpreadFast, inCodeFast, none, none},
		{timePush, inCodeSpread, inCode, none, none},
		{timePush, inCodeSpreadFast, "uftrace, dynamic", just, just},
		{timePush, inCodeSpreadFast, "lttng-ust, compiled in", just, just},
		{timePush, inCodeRecords, inCodeFast, none, none},
		{timePush, inCodeRecords, "uftrace, dynamic", just, just},
		{timePush, inCodeRecords, "lttng-ust, compiled in", just, just},
		{countPush, inCodeRecords, inCode, none, none},
		{countPush, inCodeRecords, "lttng-ust, compiled in", just, just},
		{countPush, inKernelRecords, inKernel, none, none},
		{countPush, inKernelRecords, "bpftrace, each hit", just, just},
	}
}

// Records measures what it adds to keep more than sums.
func (b *Bench) Records() (*report.Table, error) {
	t := &report.Table{Name: "records", Title: fmt.Sprintf("What histograms, and a record of each hit, add to a call of a function of %v", usual)}
	all := append(b.ours(), b.keeping()...)
	return t, b.compare(t, keepingPairings(), append(all, b.peers.EachHit()...))
}

// startRecords starts a program and records each call at its beginning and, if the task
// is timed, also at its end. Records are not read; the newest remain.
func (m *rig) startRecords(program *subject.Program, task subject.Task) (*subject.Standing, error) {
	t, err := program.StartCopy()
	if err != nil {
		return nil, err
	}
	h, err := m.attach(t.PID())
	if err != nil {
		return nil, errors.Join(err, t.End())
	}
	stop := func() error { return errors.Join(h.finish(), t.End()) }
	if err := h.record(t.Program, task); err != nil {
		return nil, errors.Join(err, stop())
	}
	return &subject.Standing{Target: t, Function: task.Function, Stop: stop}, nil
}

func (h *attachedTool) record(p *subject.Program, task subject.Task) error {
	trace, err := h.make(records)
	if err != nil {
		return err
	}
	at := []uint64{p.Entry(task.Function)}
	if task.Timed {
		at = append(at, p.Return(task.Function))
	}
	var requests []omis.Token
	for mark, addr := range at {
		request, err := h.define("thread_reached_addr([],%#x) : pa_trace_add([%s],%d)", addr, trace, mark)
		if err != nil {
			return err
		}
		requests = append(requests, request)
	}
	if _, err := h.do(": csr_enable([])"); err != nil {
		return err
	}
	return h.placed(requests)
}
