//go:build linux && amd64

package linux

import (
	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/linux/ptrace"
)

// A thread may have given up system calls (seccomp): for one that it makes for the monitor, it
// might be killed with its process.

// mayCall reports whether a thread can make system calls for the monitor. In the strict mode
// it may not even map memory. The strict mode could be suspended as a filter can (see lift),
// but the thread would not survive the monitor's death in between.
func (t *thread) mayCall() bool {
	s, err := proc.ReadThreadStatus(t.pid, t.tid)
	return err != nil || s.Seccomp != proc.SeccompStrict // the end of the thread is found elsewhere
}

// errStrict is the error for a process in the strict mode.
func errStrict(pid int) error {
	return omis.Errorf(omis.UnsupportedService, "process %d forbids itself all system calls but read and write (seccomp's strict mode): breakpoints need other calls; a list that only counts and times can run in the kernel", pid)
}

// lift keeps the kernel from asking filters when a stopped thread makes a system call for the monitor.
// That requires CAP_SYS_ADMIN. Without it the filter decides, and its decision cannot be known
// before.
func (t *thread) lift() {
	if s, err := proc.ReadThreadStatus(t.pid, t.tid); err == nil && s.Seccomp == proc.SeccompFilter {
		t.setOptions(t.options | unix.PTRACE_O_SUSPEND_SECCOMP)
	}
}

// lower undoes lift. If the thread does not stop in time, the next stop undoes it.
func (t *thread) lower() { t.setOptions(t.options &^ unix.PTRACE_O_SUSPEND_SECCOMP) }

// setOptions sets the options that a stopped thread has besides ptrace.Options.
func (t *thread) setOptions(options int) {
	if t.options != options && ptrace.SetOptions(t.tid, ptrace.Options|options) == nil {
		t.options = options
	}
}
