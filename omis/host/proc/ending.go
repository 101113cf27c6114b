//go:build linux

package proc

import "golang.org/x/sys/unix"

// Flags of a task in the kernel (proc_pid_stat(5), field 9).
const (
	taskExiting  = 0x4   // PF_EXITING
	taskSignaled = 0x400 // PF_SIGNALED
)

// Ending reports whether a process will not run user code any more: it is a zombie, or
// its end cannot be prevented. A killed process may take a while to end, above all if it
// has much memory to free.
func Ending(pid int) bool {
	s, err := ReadStatus(pid)
	if err != nil {
		return false // there is no such process
	}
	if (s.Pending|s.Shared)&SignalBit(unix.SIGKILL) != 0 {
		return true
	}
	// Read this after the signals: the kernel removes SIGKILL from the pending signals
	// when it sets these flags.
	st, err := readStat(pid)
	return err == nil && (st.state == 'Z' || st.state == 'X' || st.flags&(taskExiting|taskSignaled) != 0)
}

// Doomed reports whether a thread has ended, or will end without executing anything of its
// program: a SIGKILL is on its way to it, or the thread is acting upon one.
func Doomed(pid, tid int) bool {
	s, err := ReadThreadStatus(pid, tid)
	if err != nil || s.Pending&SignalBit(unix.SIGKILL) != 0 {
		return true
	}
	st, err := readThreadStat(pid, tid) // after the signals, as in Ending
	return err != nil || st.state == 'Z' || st.state == 'X' || st.flags&(taskExiting|taskSignaled) != 0
}
