package measure

import (
	"context"
	"fmt"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The gateway is the parent of the programs, so the gate learns the end of a program from a
// pidfd, which also has its exit status since Linux 6.15.

// pidfdInfo is struct pidfd_info of Linux (include/uapi/linux/pidfd.h).
type pidfdInfo struct {
	mask, cgroup uint64
	ids          [11]uint32
	status       int32
}

const (
	pidfdGetInfo  = 0xc040ff0b // _IOWR(PIDFS_IOCTL_MAGIC, 11, struct pidfd_info)
	pidfdInfoExit = 1 << 3
)

// watched is a process whose end is awaited.
type watched struct {
	fd    int
	ended chan struct{} // closed at the end
}

func watch(pid int) (*watched, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	w := &watched{fd: fd, ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		for {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
			if n > 0 || err != nil && err != unix.EINTR {
				return
			}
		}
	}()
	return w, nil
}

// close forgets the process, which must have ended.
func (w *watched) close() {
	<-w.ended
	unix.Close(w.fd)
}

// wait waits for the end of the process.
func (w *watched) wait(ctx context.Context) error {
	select {
	case <-w.ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// hasEnded asks the kernel: the goroutine that awaits the end may not have run yet.
func (w *watched) hasEnded() bool {
	select {
	case <-w.ended:
		return true
	default:
		n, _ := unix.Poll([]unix.PollFd{{Fd: int32(w.fd), Events: unix.POLLIN}}, 0)
		return n > 0
	}
}

// ends is hasEnded for a process that may be ending: the gateway sees in /proc that a process
// ends before the kernel reports the end.
func (w *watched) ends() bool {
	const moment = 100 * time.Millisecond
	select {
	case <-w.ended:
	case <-time.After(moment):
	}
	return w.hasEnded()
}

// failure says how the process has failed, "" if it has not, or the kernel does not say. A
// process is listed with its status a moment after the event of its end.
func (w *watched) failure() string {
	for range 100 {
		info := pidfdInfo{mask: pidfdInfoExit}
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(w.fd), pidfdGetInfo, uintptr(unsafe.Pointer(&info)))
		if errno == 0 && info.mask&pidfdInfoExit != 0 {
			return failureOf(unix.WaitStatus(info.status))
		}
		if errno == unix.ENOTTY || errno == unix.EINVAL {
			return ""
		}
		time.Sleep(time.Millisecond)
	}
	return ""
}

func failureOf(status unix.WaitStatus) string {
	switch {
	case status.Signaled():
		return fmt.Sprintf("was ended by the signal %v", syscall.Signal(status.Signal()))
	case status.ExitStatus() != 0:
		return fmt.Sprintf("ended with status %d", status.ExitStatus())
	}
	return ""
}
