//go:build linux && amd64

package probe

import (
	"fmt"
	"slices"

	"mirador/bench/report"
	"mirador/bench/subject"
)

// pairing compares a placement with a reference at one task, with goals for both ways of
// calling.
type pairing struct {
	task      subject.Task
	ours      string
	reference string // "" if none
	lb, tb    report.Goal
}

// The tasks differ in the first instruction of the function: a push, which the kernel
// emulates at a uprobe; an endbr64 followed by a push; a mov of five bytes.
var (
	countPush   = subject.Task{Function: "pushed"}
	countLanded = subject.Task{Function: "guarded"}
	countMov    = subject.Task{Function: "moved"}
	timePush    = subject.Task{Function: "pushed", Timed: true}
	timeLanded  = subject.Task{Function: "guarded", Timed: true}
)

// title describes a task's function in a table.
func title(t subject.Task) string {
	return map[string]string{"pushed": "at a push", "guarded": "at an endbr64", "moved": "at a mov"}[t.Function]
}

// none is the goal of rows that have no goal.
var none report.Goal

// ownPairings compares the placements with bare eBPF programs.
func ownPairings() []pairing {
	tenPercent := report.Within(1.1)
	list := []pairing{
		{countPush, inCode, "", none, report.AtMost(2.5)},
		{timePush, inCodeFast, "", none, report.AtMost(20)},
		{timePush, inCode, "", report.AtMost(55), report.AtMost(55)},
		{timePush, inCode, twoReadings, tenPercent, tenPercent},
		{timePush, inCodeSome, "", report.AtMost(2.5), report.AtMost(10)},
	}
	for _, t := range []subject.Task{countPush, countLanded, countMov, timePush, timeLanded} {
		list = append(list, pairing{t, inKernel, bareEBPF, tenPercent, tenPercent})
	}
	return append(list,
		pairing{timePush, inKernel, bareReturning, none, none},
		pairing{countPush, trap, "", none, none}, pairing{timePush, trap, "", none, none})
}

// peerPairings compares the placements with other tools.
func peerPairings() []pairing {
	times, just := report.Cheaper, report.Beside()
	return []pairing{
		{countPush, inCode, "bpftrace", just, times(200)},
		{countMov, inCode, "gdb, fast tracepoint", just, times(50)},
		{countPush, inCode, "lttng-ust, compiled in", just, just},
		{countPush, inCode, "perf", just, just},
		{timePush, inCodeFast, "uftrace, dynamic", just, times(4)},
		{timePush, inCodeFast, "bpftrace", just, times(60)},
		{timePush, inCode, "lttng-ust, compiled in", just, just},
		{timePush, inCode, "perf", just, just},
		{countPush, inKernel, "bpftrace", just, just},
		{countLanded, inKernel, "bpftrace", times(5), times(5)},
		{timePush, inKernel, "bpftrace", just, just},
		{timeLanded, inKernel, "bpftrace", times(5), times(5)},
		{countPush, inKernel, "perf", just, just},
		{timePush, inKernel, "perf", just, just},
		{countPush, trap, "gdb, breakpoint", just, just},
		{timePush, trap, "gdb, breakpoint", just, just},
	}
}

// Probe measures the placements compared with bare eBPF programs.
func (b *Bench) Probe() (*report.Table, error) {
	t := &report.Table{Name: "probe", Title: fmt.Sprintf("What a probe adds to a call of a function of %v (LB: each call waits for the one before; TB: it does not)", usual)}
	return t, b.compare(t, ownPairings(), append(slices.Concat(b.ours(), b.sampling(), b.references()), b.reading()))
}

// Peers measures the placements compared with other tools.
func (b *Bench) Peers() (*report.Table, error) {
	t := &report.Table{Name: "peers", Title: fmt.Sprintf("What a probe adds to a call of a function of %v, beside other tools", usual)}
	return t, b.compare(t, peerPairings(), append(b.ours(), b.peers.Contenders()...))
}

// compare measures the pairings, task by task.
func (b *Bench) compare(t *report.Table, list []pairing, contenders []subject.Contender) error {
	restore, err := subject.OnCPU(cpu)
	if err != nil {
		return err
	}
	defer func() { err = restore() }()
	for _, task := range tasksOf(list) {
		c, err := b.cost(task, wanted(list, task, contenders))
		if err != nil {
			return err
		}
		for _, p := range list {
			if p.task == task {
				c.rows(t, p)
			}
		}
	}
	return err
}

// tasksOf returns the tasks in the order of their first occurrences.
func tasksOf(list []pairing) (tasks []subject.Task) {
	seen := make(map[subject.Task]bool)
	for _, p := range list {
		if !seen[p.task] {
			seen[p.task] = true
			tasks = append(tasks, p.task)
		}
	}
	return tasks
}

// wanted returns the contenders in pairings of a task.
func wanted(list []pairing, task subject.Task, contenders []subject.Contender) (some []subject.Contender) {
	for _, c := range contenders {
		for _, p := range list {
			if p.task == task && (p.ours == c.Name || p.reference == c.Name) {
				some = append(some, c)
				break
			}
		}
	}
	return some
}

// rows adds a row for each way of calling.
func (c costs) rows(t *report.Table, p pairing) {
	goals := map[string]report.Goal{dependent: p.lb, independent: p.tb}
	for _, mode := range modes {
		row := report.Row{
			What: fmt.Sprintf("%s, %s %s, %s", p.ours, p.task, title(p.task), mode), Unit: report.Nanoseconds,
			Than: p.reference, Goal: goals[mode],
		}
		mine, ok := c.added[p.ours]
		if ok {
			row.Ours = mine[mode]
		} else {
			row.Why = c.why[p.ours]
		}
		if other, ok := c.added[p.reference]; ok {
			s := other[mode]
			row.Reference = &s
		} else if p.reference != "" && row.Why == "" {
			row.Why = c.why[p.reference]
		}
		t.Add(row)
	}
}
