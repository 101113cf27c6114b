//go:build linux

package proc

import "golang.org/x/sys/unix"

// Flags of a task, as the kernel has them (proc_pid_stat(5), field 9).
const (
	taskExiting  = 0x4   // PF_EXITING
	taskSignaled = 0x400 // PF_SIGNALED
)

// Ending tells whether a process runs no more: it has ended and waits for its
// parent, or is about to end whatever anybody does. Who has been killed may need a
// while for it, above all when it has much memory to give back.
func Ending(pid int) bool {
	s, err := ReadStatus(pid)
	if err != nil {
		return false // nothing is there
	}
	if (s.Pending|s.Shared)&SignalBit(unix.SIGKILL) != 0 {
		return true
	}
	// After the signals, for from them it goes on to these.
	st, err := readStat(pid)
	return err == nil && (st.state == 'Z' || st.state == 'X' || st.flags&(taskExiting|taskSignaled) != 0)
}
