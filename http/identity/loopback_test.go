package identity

import (
	"net"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// accepted connects to a listener as a user and returns both ends.
func accepted(t testing.TB, l net.Listener, network string, uid int) (ours *net.TCPConn, theirs net.Conn) {
	t.Helper()
	dialled := make(chan net.Conn)
	go func() {
		runtime.LockOSThread() // for good: the thread has another user
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); errno != 0 {
			t.Error(errno)
		}
		conn, err := net.Dial(network, l.Addr().String())
		if err != nil {
			t.Error(err)
		}
		dialled <- conn
	}()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	theirs = <-dialled
	t.Cleanup(func() { conn.Close(); theirs.Close() })
	return conn.(*net.TCPConn), theirs
}

func TestOfLoopback(t *testing.T) {
	for _, c := range []struct{ listen, dial string }{{"127.0.0.1:0", "tcp4"}, {"[::1]:0", "tcp6"}, {"[::]:0", "tcp6"}} {
		l, err := net.Listen("tcp", c.listen)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		for _, uid := range []int{os.Getuid(), 65534} {
			ours, theirs := accepted(t, l, c.dial, uid)
			if got, err := OfLoopback(ours); got != uid || err != nil {
				t.Errorf("%s: uid %d, %v, want %d", c.listen, got, err, uid)
			}
			theirs.Close()
		}
	}
	// A listener of both families has the addresses of IPv4 under mapped ones.
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.Dial("tcp4", net.JoinHostPort("127.0.0.1", portOf(l)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ours, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	if got, err := OfLoopback(ours.(*net.TCPConn)); got != os.Getuid() || err != nil {
		t.Errorf("IPv4 over IPv6: uid %d, %v", got, err)
	}
}

func portOf(l net.Listener) string {
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

func BenchmarkOfLoopback(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	ours, _ := accepted(b, l, "tcp", os.Getuid())
	for b.Loop() {
		if _, err := OfLoopback(ours); err != nil {
			b.Fatal(err)
		}
	}
}
