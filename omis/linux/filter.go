//go:build linux && amd64

package linux

import (
	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/linux/ptrace"
)

// A thread may have forbidden itself system calls (seccomp): for one that it makes for
// us it might be killed, with its process.

// mayCall tells whether a thread can make system calls for us. In the strict mode it may
// not even map memory. That could be lifted as a filter can (see lift), but not so that
// the thread survives our death in between.
func (t *thread) mayCall() bool {
	s, err := proc.ReadThreadStatus(t.pid, t.tid)
	return err != nil || s.Seccomp != proc.SeccompStrict // of one that has ended others know
}

// errStrict says why a process makes no system calls for us.
func errStrict(pid int) error {
	return omis.Errorf(omis.UnsupportedService, "process %d forbids itself all system calls but read and write (seccomp's strict mode): nothing can stand in it that takes others, as breakpoints do; what only counts and times can run in the kernel", pid)
}

// lift has the kernel ask no filter when a stopped thread makes a system call for us.
// That takes CAP_SYS_ADMIN. Without it the filter decides: nobody else can know what it
// would say.
func (t *thread) lift() {
	if s, err := proc.ReadThreadStatus(t.pid, t.tid); err == nil && s.Seccomp == proc.SeccompFilter {
		t.setOptions(t.options | unix.PTRACE_O_SUSPEND_SECCOMP)
	}
}

// lower undoes lift. If the thread does not stop in time, the next stop undoes it.
func (t *thread) lower() { t.setOptions(t.options &^ unix.PTRACE_O_SUSPEND_SECCOMP) }

// setOptions sets the options of a stopped thread that it has besides ptrace.Options.
func (t *thread) setOptions(options int) {
	if t.options != options && ptrace.SetOptions(t.tid, ptrace.Options|options) == nil {
		t.options = options
	}
}
