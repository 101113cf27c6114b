//go:build linux && amd64

package hold

import (
	"fmt"
	"time"

	"github.com/prometheus/procfs"

	"mirador/bench/report"
	"mirador/omis/linux"
	"mirador/omis/node"
)

// many is the number of processes, or threads, in one request.
const many = 100

// processes measures information about processes and threads, against reading the same
// files with prometheus/procfs.
func (b *bench) processes() error {
	m, err := openRig(linux.Config{})
	if err != nil {
		return err
	}
	defer func() { b.note(m.close()) }()
	var pids []int
	for range many {
		t, err := startTarget(b.program("target"))
		if err != nil {
			return err
		}
		defer t.Kill()
		if _, err := m.attach(t.PID); err != nil {
			return err
		}
		pids = append(pids, t.PID)
	}
	for _, set := range []struct {
		what  string
		flags node.ProcFields
		read  func(procfs.Proc) error
	}{
		{"state, times", node.ProcSchedulingState | node.ProcTotalTime | node.ProcPriority | node.ProcSystemTime | node.ProcResidentSize, readStat},
		{"and users, switches", node.ProcUID | node.ProcSchedulingState | node.ProcTotalTime | node.ProcMaxResidentSize | node.ProcVolContSwitch, readBoth},
	} {
		what := fmt.Sprintf("proc_get_info of %d: %s", many, set.what)
		request := fmt.Sprintf(": proc_get_info([],%#x)", uint32(set.flags))
		err := b.compareReading(what, func() error {
			_, err := m.do("%s", request)
			return err
		}, func() error { return readAll(pids, set.read) })
		if err != nil {
			return err
		}
	}
	return b.threads()
}

// warmUp is the time for which results do not count. When a monitor is asked about many
// threads it loads an eBPF program, which takes a while.
const warmUp = 300 * time.Millisecond

// readings is the number of measurements in a round, which are short.
const readings = 10

// compareReading measures both in turn.
func (b *bench) compareReading(what string, ours, procfs func() error) error {
	var mine, theirs []time.Duration
	for begin := time.Now(); len(mine) < readings*b.Rounds; {
		one, err := duration(ours)
		if err != nil {
			return err
		}
		other, err := duration(procfs)
		if err != nil {
			return err
		}
		if time.Since(begin) > warmUp {
			mine, theirs = append(mine, one), append(theirs, other)
		}
	}
	b.add(what, "procfs", summary(mine), summary(theirs), report.Cheaper(3))
	return nil
}

func readStat(p procfs.Proc) error {
	_, err := p.Stat()
	return err
}

func readBoth(p procfs.Proc) error {
	if err := readStat(p); err != nil {
		return err
	}
	_, err := p.NewStatus()
	return err
}

func readAll(pids []int, read func(procfs.Proc) error) error {
	for _, pid := range pids {
		p, err := procfs.NewProc(pid)
		if err != nil {
			return err
		}
		if err := read(p); err != nil {
			return err
		}
	}
	return nil
}

// threads measures the same for the threads of one process.
func (b *bench) threads() error {
	t, err := startTarget(b.program("target"), fmt.Sprint(many))
	if err != nil {
		return err
	}
	defer t.Kill()
	m, err := openRig(linux.Config{})
	if err != nil {
		return err
	}
	defer func() { b.note(m.close()) }()
	p, err := m.attach(t.PID)
	if err != nil {
		return err
	}
	flags := node.ThreadSchedulingState | node.ThreadTotalTime | node.ThreadPriority | node.ThreadSystemTime
	request := fmt.Sprintf(": thread_get_info([%s],%#x)", p, uint32(flags))
	return b.compareReading(fmt.Sprintf("thread_get_info of %d: state, times", many), func() error {
		_, err := m.do("%s", request)
		return err
	}, func() error {
		all, err := procfs.AllThreads(t.PID)
		if err != nil {
			return err
		}
		for _, one := range all {
			if err := readStat(one); err != nil {
				return err
			}
		}
		return nil
	})
}
