//go:build linux

package proc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"mirador/omis"
)

// kernelThread is the flag PF_KTHREAD in /proc/PID/stat.
const kernelThread = 0x00200000

// Identify finds a process and reports whether it may be observed; the error says what
// prevents it, and what would help.
func Identify(pid int) (omis.ProcID, error) {
	stat, status, err := lookUp(pid)
	if err != nil {
		return omis.ProcID{}, err
	}
	id := omis.ProcID{PID: pid, Start: stat.start}
	switch {
	case status.TGID != pid:
		return id, omis.Errorf(omis.UnknownObject, "%d is no process but a thread of process %d", pid, status.TGID)
	case pid == os.Getpid():
		return id, omis.Errorf(omis.ParameterError, "process %d is the monitor itself, which cannot observe itself", pid)
	case stat.flags&kernelThread != 0:
		return id, omis.Errorf(omis.UnsupportedService, "cannot attach to process %d: %s is a kernel thread", pid, status.Name)
	case stat.state == 'Z' && !stat.over():
		return id, omis.Errorf(omis.UnsupportedService, "cannot attach to process %d: its first thread has ended, and the kernel does not show the memory of the others any more", pid)
	case stat.over():
		return id, omis.Errorf(omis.UnknownObject, "cannot attach to process %d: it has terminated, and waits as a zombie for its parent (pid %d)", pid, stat.parent)
	}
	if err := mayTrace(pid, status); err != nil {
		return id, err
	}
	return id, wordSize(pid)
}

// MayTrace returns an error that says what prevents the monitor from tracing a process,
// nil if nothing does.
func MayTrace(pid int) error {
	s, err := ReadStatus(pid)
	if err != nil {
		return ended(pid)
	}
	return mayTrace(pid, s)
}

func mayTrace(pid int, s Status) error {
	if err := traced(pid, s); err != nil {
		return err
	}
	return accessible(pid, s)
}

// lookUp reads a process, twice if it seems to have ended; alive has the reason.
func lookUp(pid int) (stat, Status, error) {
	s, status, err := lookUpOnce(pid)
	if err != nil || s.over() {
		s, status, err = lookUpOnce(pid)
	}
	return s, status, err
}

func lookUpOnce(pid int) (stat, Status, error) {
	s, err := readStat(pid)
	if err != nil || pid <= 0 {
		return s, Status{}, omis.Errorf(omis.UnknownObject, "there is no process %d", pid)
	}
	status, err := ReadStatus(pid)
	if err != nil {
		return s, status, ended(pid)
	}
	return s, status, nil
}

func ended(pid int) error {
	return omis.Errorf(omis.UnknownObject, "process %d has ended", pid)
}

// traced returns an error if another process traces this one. The kernel names the
// tracing thread; threads of the monitor are no obstacle.
func traced(pid int, s Status) error {
	if s.Tracer == 0 {
		return nil
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", s.Tracer)); err == nil {
		return nil
	}
	tracer, err := ReadStatus(s.Tracer)
	if err != nil {
		if now, err := ReadStatus(pid); err == nil && now.Tracer != s.Tracer {
			return traced(pid, now) // that tracer has ended or detached
		}
		return omis.Errorf(omis.NoPermission, "cannot attach to process %d: traced by another process", pid)
	}
	return omis.Errorf(omis.NoPermission, "cannot attach to process %d: traced by %s (pid %d)", pid, tracer.Name, tracer.TGID)
}

// IsTracedByOther reports whether another process traces a process.
func IsTracedByOther(pid int) bool {
	s, err := ReadStatus(pid)
	return err == nil && traced(pid, s) != nil
}

// accessible opens the memory of the process: that requires the same permission as
// tracing, and does not disturb the process.
func accessible(pid int, s Status) error {
	f, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err == nil {
		return f.Close()
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return ended(pid)
	}
	return omis.Errorf(omis.NoPermission, "cannot attach to process %d: %s", pid, refusal(s))
}

// refusal explains why the kernel does not permit access to a process.
func refusal(s Status) string {
	self, err := ReadStatus(os.Getpid())
	if err != nil {
		return "not permitted"
	}
	uid, gid := self.UIDs[1], self.GIDs[1]
	hasCapability := self.Effective&(1<<unix.CAP_SYS_PTRACE) != 0
	switch {
	case hasCapability:
		return "the kernel refuses, though the monitor has CAP_SYS_PTRACE (a security module or another user namespace)"
	case !all(s.UIDs, uid):
		return fmt.Sprintf("it belongs to uid %d, the monitor to uid %d; it would need CAP_SYS_PTRACE", foreign(s.UIDs, uid), uid)
	case !all(s.GIDs, gid):
		return fmt.Sprintf("it belongs to gid %d, the monitor to gid %d; it would need CAP_SYS_PTRACE", foreign(s.GIDs, gid), gid)
	case s.Permitted&^self.Permitted != 0:
		return "it has capabilities the monitor lacks; the monitor would need CAP_SYS_PTRACE"
	}
	switch scope := yamaScope(); scope {
	case 1:
		return "kernel.yama.ptrace_scope is 1: only an ancestor of a process may observe it; start it with the monitor, give the monitor CAP_SYS_PTRACE, or set the scope to 0"
	case 2:
		return "kernel.yama.ptrace_scope is 2: the monitor would need CAP_SYS_PTRACE"
	case 3:
		return "kernel.yama.ptrace_scope is 3: no process may observe another one until the next boot"
	}
	return "it has made itself not dumpable (prctl, or a setuid program); the monitor would need CAP_SYS_PTRACE"
}

// Owner returns the user whom ptrace regards as the owner of a process: root, unless all
// user ids of the process are the same and it is dumpable.
func Owner(pid int) (int, error) {
	// The file mem belongs to root if the process is not dumpable; the directory shows
	// the effective uid in any case.
	var file unix.Stat_t
	s, err := ReadStatus(pid)
	if err != nil || unix.Stat(fmt.Sprintf("/proc/%d/mem", pid), &file) != nil {
		return 0, ended(pid)
	}
	if uid := s.UIDs[0]; s.UIDs != [4]int{uid, uid, uid, uid} {
		return 0, nil
	}
	return int(file.Uid), nil
}

func all(ids [4]int, id int) bool { return ids == [4]int{id, id, id, ids[3]} }

func foreign(ids [4]int, id int) int {
	for _, other := range ids[:3] {
		if other != id {
			return other
		}
	}
	return id
}

// yamaScope returns the Yama module's ptrace_scope, -1 on a kernel without that module.
func yamaScope() int {
	b, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	if err != nil || len(b) == 0 {
		return -1
	}
	return int(b[0] - '0')
}

// wordSize returns an error for programs that are not 64-bit ELF. It reads what the kernel
// told the program at its start, because the program's file may block its readers. A process
// whose vector is not readable need not be a 32-bit process.
func wordSize(pid int) error {
	const pair, headerSize, headerSize64 = 16, 4, 56 // AT_PHENT, and its value
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/auxv", pid))
	if err != nil || len(text) < pair || binary.LittleEndian.Uint64(text) == 0 {
		return nil // the vector is empty while the process executes a program
	}
	for ; len(text) >= pair; text = text[pair:] {
		if binary.LittleEndian.Uint64(text) == headerSize && binary.LittleEndian.Uint64(text[pair/2:]) == headerSize64 {
			return nil
		}
	}
	return omis.Errorf(omis.UnsupportedService, "cannot attach to process %d: it is a 32-bit program, and the monitor observes x86-64 programs only", pid)
}

// Alive returns an error unless process p still runs; a zombie does not.
func Alive(p omis.ProcID) error {
	err := alive(p)
	if err != nil {
		// A thread that executes a program replaces the first thread. A reader may see
		// the former first thread as dead at this moment, so read again.
		err = alive(p)
	}
	return err
}

func alive(p omis.ProcID) error {
	s, err := readStat(p.PID)
	if err != nil || s.start != p.Start || s.over() {
		return ended(p.PID)
	}
	return nil
}
