//go:build linux && amd64

package peers

import (
	"os/exec"

	"mirador/bench/subject"
)

// Peers starts other tools.
type Peers struct {
	// Program is the program to probe, Traced the same with static tracepoints of
	// lttng-ust; Traced is nil if it could not be compiled, for the reason Untraced.
	Program, Traced *subject.Program
	Untraced        error
	Dir             string // for files that the tools write
}

// Contenders returns all tools, including those that are missing.
func (p *Peers) Contenders() []subject.Contender {
	return []subject.Contender{
		{Name: "bpftrace", Start: p.bpftrace},
		{Name: "perf", Start: p.perf},
		{Name: "gdb, breakpoint", Start: p.breakpoint, Slow: true},
		{Name: "gdb, fast tracepoint", Start: p.fastTracepoint, Suits: fastTracepoints},
		{Name: "uftrace, dynamic", Start: p.uftrace, Suits: onlyTimes},
		{Name: "lttng-ust, compiled in", Start: p.lttng},
	}
}

// onlyTimes returns why a tool that always records times is not used for a task that only
// counts, and "" for other tasks.
func onlyTimes(t subject.Task) string {
	if t.Timed {
		return ""
	}
	return "it records the times of entry and return, and does not merely count"
}

// find returns the path of a tool.
func find(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", &subject.Missing{Why: name + " is not installed (scripts/install bench gets it on Debian)"}
	}
	return path, nil
}
