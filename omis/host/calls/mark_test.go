package calls

import (
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMark makes a marked call on the running kernel, if Marks says that it can.
func TestMark(t *testing.T) {
	for release, want := range map[string]bool{"5.13.19-generic": false, "5.14.0": true, "6.18.44-fc-v595": true, "4.19.0-27-amd64": false, "what": false} {
		if got := Marks(release); got != want {
			t.Errorf("%s: %v", release, got)
		}
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil || runtime.GOARCH != "amd64" || !Marks(unix.ByteSliceToString(u.Release[:])) {
		return
	}
	pid, _, errno := syscall.RawSyscall(uintptr(Marked(unix.SYS_GETPID)), 0, 0, 0)
	if errno != 0 || int(pid) != unix.Getpid() {
		t.Errorf("%d, %v", pid, errno)
	}
}
