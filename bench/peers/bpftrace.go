//go:build linux && amd64

package peers

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"mirador/bench/subject"
)

// bpftrace counts or times by thread as bpftrace's manual does; its only probe at returns
// is the uretprobe.
func (p *Peers) bpftrace(task subject.Task) (*subject.Standing, error) {
	s, _, err := p.runBpftrace(task, meanOfStats, func(path string) string {
		if task.Timed {
			return fmt.Sprintf("uprobe:%[1]s:%[2]s { @at[tid] = nsecs; } uretprobe:%[1]s:%[2]s /@at[tid]/ { @[tid] = stats(nsecs - @at[tid]); delete(@at[tid]); }", path, task.Function)
		}
		return fmt.Sprintf("uprobe:%s:%s { @[tid] = count(); }", path, task.Function)
	})
	return s, err
}

// runBpftrace runs the bpftrace script that script returns for the path of the target.
func (p *Peers) runBpftrace(task subject.Task, mean func([]string) (float64, error), script func(path string) string) (*subject.Standing, *tool, error) {
	path, err := find("bpftrace")
	if err != nil {
		return nil, nil, err
	}
	t, err := p.Program.StartCopy()
	if err != nil {
		return nil, nil, err
	}
	b, err := beginBpftrace(path, t.PID(), script(t.Path))
	if err != nil {
		_ = t.End()
		return nil, nil, err
	}
	return interrupted(t, b, task, mean), b, nil
}

// BpftraceMost is the number of probes that bpftrace gets at once: it loads a program for
// each.
const BpftraceMost = 100

// BpftraceMany counts all calls of many functions of a program.
func BpftraceMany(program *subject.Program, functions []string) (*subject.Standing, error) {
	path, err := find("bpftrace")
	if err != nil {
		return nil, err
	}
	t, err := program.StartCopy()
	if err != nil {
		return nil, err
	}
	var probes []string
	for _, f := range functions {
		probes = append(probes, fmt.Sprintf("uprobe:%s:%s", t.Path, f))
	}
	b, err := beginBpftrace(path, t.PID(), strings.Join(probes, ",")+" { @ = count(); }")
	if err != nil {
		_ = t.End()
		return nil, err
	}
	return interrupted(t, b, subject.Task{}, nil), nil
}

func beginBpftrace(path string, pid int, script string) (*tool, error) {
	b, err := launch(exec.Command(path, "-p", fmt.Sprint(pid), "-e", `BEGIN { printf("begun\n"); } `+script))
	if err != nil {
		return nil, err
	}
	return b, b.await("begun")
}

var averageOfStats = regexp.MustCompile(`^@\[\d+\]: count \d+, average (\d+)`)

// meanOfStats finds the mean in the final output of bpftrace.
func meanOfStats(lines []string) (float64, error) {
	for _, line := range lines {
		if m := averageOfStats.FindStringSubmatch(line); m != nil {
			return strconv.ParseFloat(m[1], 64)
		}
	}
	return 0, fmt.Errorf("bpftrace printed no mean, but %q", lines)
}
