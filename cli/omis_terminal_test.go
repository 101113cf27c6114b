package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// screen is a terminal on which a program runs.
type screen struct {
	*testing.T
	ptmx *os.File
	done chan struct{}

	mu   sync.Mutex
	text strings.Builder
}

// openTerminal opens the controlling end of a new pseudo terminal. If the machine has no devpts at
// /dev/pts, it mounts one, which requires root.
func openTerminal(t *testing.T) *os.File {
	t.Helper()
	if ptmx, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0); err == nil {
		return ptmx
	}
	return openPrivateTerminal(t)
}

func openPrivateTerminal(t *testing.T) *os.File {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("devpts", dir, "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0600"); err != nil {
		t.Fatalf("this machine has no pseudo terminals, and devpts cannot be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	ptmx, err := os.OpenFile(filepath.Join(dir, "ptmx"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	return ptmx
}

// openScreen starts a program with a new pseudo terminal as its terminal.
func openScreen(t *testing.T, ptmx *os.File, cmd *exec.Cmd) *screen {
	t.Helper()
	s := &screen{T: t, ptmx: ptmx, done: make(chan struct{})}
	fd := int(ptmx.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 200}); err != nil {
		t.Fatal(err)
	}
	peer, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY)
	if errno != 0 {
		t.Fatal(errno)
	}
	tty := os.NewFile(peer, "pseudo terminal")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tty.Close()
	go s.watch()
	t.Cleanup(func() {
		if t.Failed() {
			cmd.Process.Kill()
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the session ended with %v", err)
		}
		<-s.done
		ptmx.Close()
	})
	return s
}

// watch reads until the program closes its terminal.
func (s *screen) watch() {
	defer close(s.done)
	buf := make([]byte, 4096)
	for {
		n, err := s.ptmx.Read(buf)
		s.mu.Lock()
		s.text.Write(buf[:n])
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *screen) keys(text string) {
	s.Helper()
	if _, err := s.ptmx.WriteString(text); err != nil {
		s.Fatal(err)
	}
}

// wait waits until a text has appeared since the last wait, and returns the output since then.
func (s *screen) wait(text string) string {
	s.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		s.mu.Lock()
		before, after, found := strings.Cut(s.text.String(), text)
		if found {
			s.text.Reset()
			s.text.WriteString(after)
			s.mu.Unlock()
			return before
		}
		s.mu.Unlock()
		if time.Now().After(deadline) {
			s.Fatalf("%q does not appear; there is %q", text, before)
		}
	}
}

// TestSessionOnTerminal checks a session on a terminal: TAB completes services and tokens,
// cursor-up repeats the last line, and a conditional reply does not disturb the line being typed.
func TestSessionOnTerminal(t *testing.T) {
	gateway := startServe(t, os.Geteuid())
	gateway.must(t, "", "run", "--app", "one", "--", "sleep", "600")
	cmd := exec.Command(miradorPath, "omis")
	cmd.Env = append(os.Environ(), "MIRADOR_GATEWAY=unix:"+gateway.socket, "TERM=xterm", "MIRADOR_HISTORY="+"off")
	open := openTerminal
	if os.Geteuid() == 0 {
		open = openPrivateTerminal // tests openPrivateTerminal on every machine; TestHistoryBetweenSessions uses the machine's devpts
	}
	s := openScreen(t, open(t), cmd)
	s.wait("omis> ")
	s.keys(": proc_get_i\t[p\t],0x200)\r")
	s.wait("proc_get_info([p_1],0x200)")
	s.wait("1 OMIS_OK [p_1] ")
	s.wait("omis> ")
	s.keys("\x1b[A\x1b[D0\r") // cursor up, left, and a digit: 0x2000 asks for another component
	s.wait("1 OMIS_OK [p_1] 0.0")
	s.wait("omis> ")
	s.keys("proc_has_term\t[]) : print([$pr\t])\r")
	s.wait("0 OMIS_CSR_DEFINED(2) [] c_2")
	s.wait("omis> ")
	s.keys(": csr_enable([c\t])\r")
	s.wait("0 OMIS_CSR_ENABLED(4) [] c_2")
	s.keys(": print([12345")
	s.wait(": print([12345")
	gateway.must(t, "", "omis", ": proc_send_signal([p_1],9)")
	s.wait("0 OMIS_CSR_TRIGGERED(10) [p_1] c_2\r\n1 OMIS_OK [] 1,[p_1]\r\n")
	s.wait("omis> : print([12345") // the line appears again
	s.keys("])\r")
	s.wait("1,[12345]")
	s.wait("omis> ")
	s.keys("help version\r")
	s.wait("version()")
	s.wait("omis> ") // until then the terminal itself may take the key below, and the session never sees it
	s.keys("\x04")
}
