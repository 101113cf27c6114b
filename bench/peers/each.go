//go:build linux && amd64

package peers

import (
	"fmt"

	"mirador/bench/subject"
)

// EachHit returns the tools that record every hit, including those that can only do that.
func (p *Peers) EachHit() []subject.Contender {
	return []subject.Contender{
		{Name: "bpftrace, each hit", Start: p.bpftraceEach},
		{Name: "uftrace, dynamic", Start: p.uftrace, Suits: onlyTimes},
		{Name: "lttng-ust, compiled in", Start: p.lttng},
	}
}

// bpftraceEach makes bpftrace print a line for each hit, which goes from the program
// through the kernel's buffer to bpftrace. The lines are discarded.
func (p *Peers) bpftraceEach(task subject.Task) (*subject.Standing, error) {
	s, b, err := p.runBpftrace(task, nil, func(path string) string {
		script := fmt.Sprintf(`uprobe:%s:%s { printf("%%d %%llu\n", tid, nsecs); }`, path, task.Function)
		if task.Timed {
			script += fmt.Sprintf(` uretprobe:%s:%s { printf("%%d %%llu\n", tid, nsecs); }`, path, task.Function)
		}
		return script
	})
	if err != nil {
		return nil, err
	}
	s.Mean = nil
	go func() {
		for range b.lines {
		}
	}()
	return s, nil
}
