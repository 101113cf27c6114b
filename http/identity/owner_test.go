package identity

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const nobody = 65534

// eventuallyOwned waits until a process belongs to a user, because a new process first executes
// its program.
func eventuallyOwned(t *testing.T, pid, want int) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		uid, err := OfProcess(pid)
		if err == nil && uid == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("process %d belongs to %d, want %d; %v", pid, uid, want, err)
		}
	}
}

func start(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait() // it was killed
	})
	return cmd.Process.Pid
}

func as(uid uint32) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
}

func TestOfProcess(t *testing.T) {
	eventuallyOwned(t, os.Getpid(), os.Geteuid())
	his := exec.Command("sleep", "60")
	his.SysProcAttr = as(nobody)
	eventuallyOwned(t, start(t, his), nobody)
	for _, pid := range []int{4194305, -1, 0} {
		if _, err := OfProcess(pid); !errors.Is(err, ErrNoProcess) {
			t.Errorf("process %d: %v", pid, err)
		}
	}
}

// TestOfProcessOfTwoUsers starts a process of root that acts as another user for a while. It
// is not that user's.
func TestOfProcessOfTwoUsers(t *testing.T) {
	pid := start(t, exec.Command("setpriv", "--euid", "65534", "sleep", "60"))
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); string(name) == "sleep\n" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("setpriv executes nothing")
		}
	}
	if uid, err := OfProcess(pid); err != nil || uid != 0 {
		t.Errorf("it belongs to %d; %v", uid, err)
	}
}

// TestOfProcessAfterExec checks that a process does not belong to the user who started it after
// it has executed a set-user-ID program.
func TestOfProcessAfterExec(t *testing.T) {
	dir := t.TempDir()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	setUID := filepath.Join(dir, "sleep")
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o755), os.WriteFile(setUID, text, 0o755), os.Chmod(setUID, 0o755|os.ModeSetuid)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", "read go; exec "+setUID+" 60")
	cmd.Dir, cmd.SysProcAttr = "/", as(nobody)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pid := start(t, cmd)
	eventuallyOwned(t, pid, nobody)
	stdin.Write([]byte("\n"))
	eventuallyOwned(t, pid, 0)
}

func TestOfPeer(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o755), os.Chmod(socket, 0o666)); err != nil {
		t.Fatal(err)
	}
	for _, uid := range []int{os.Geteuid(), nobody} {
		conn := dialAs(t, socket, uid)
		peer, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := OfPeer(peer.(*net.UnixConn)); err != nil || got != uid {
			t.Errorf("the peer is %d, want %d; %v", got, uid, err)
		}
		conn.Close()
		peer.Close()
	}
}

// dialAs connects on a thread that has become another user, and that ends afterwards.
func dialAs(t *testing.T, socket string, uid int) net.Conn {
	t.Helper()
	var conn net.Conn
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); errno != 0 {
			err = errno
			return
		}
		conn, err = net.Dial("unix", socket)
	}()
	<-done
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}
