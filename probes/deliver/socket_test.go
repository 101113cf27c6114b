package deliver

import (
	"bufio"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func listenAt(t *testing.T, path string) *net.UnixListener {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// accept returns the next connection on which something is sent: a request tries the socket.
func accept(t *testing.T, l net.Listener) (net.Conn, *bufio.Reader) {
	t.Helper()
	for {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		in := bufio.NewReaderSize(c, 16) // it reads little ahead
		if _, err := in.Peek(1); err == nil {
			return c, in
		}
	}
}

func readLines(t *testing.T, in *bufio.Reader, n int) (lines []string) {
	t.Helper()
	for range n {
		text, err := in.ReadString('\n')
		if err != nil {
			t.Fatalf("after %d of %d lines: %v", len(lines), n, err)
		}
		lines = append(lines, text)
	}
	return lines
}

func wantLines(first, last int) (list []string) {
	for n := first; n <= last; n++ {
		list = append(list, line("probe-1", n))
	}
	return list
}

// TestStreamSocket delivers to a receiver that ends and comes back: with documents that it has
// not read, and while documents are sent.
func TestStreamSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	l := listenAt(t, path)
	all := OpenQueues(Rules{AnySocket}, newMemory(), quiet())
	d := to(t, all, "unix://"+path)
	for n := range 50 {
		send(d, value(n+1))
	}
	c, in := accept(t, l)
	if got := readLines(t, in, 50); !slices.Equal(got, wantLines(1, 50)) {
		t.Errorf("received is %q", got)
	}
	eventually(t, "all are delivered", func() bool { return all.States("probe-1")[0].Waiting == 0 })
	for n := range 10 {
		send(d, value(n+51))
	}
	if got := readLines(t, in, 1); !slices.Equal(got, wantLines(51, 51)) {
		t.Errorf("received is %q", got)
	}
	eventually(t, "more is sent", func() bool { _, err := in.Peek(1); return err == nil })
	c.Close() // the other documents are not read
	l.Close()
	for n := range 10 {
		send(d, value(n+61))
	}
	eventually(t, "the failure shows", func() bool { return all.States("probe-1")[0].Failure != "" })
	_, in = accept(t, listenAt(t, path))
	known := make(map[string]bool)
	for expected := wantLines(52, 70); len(known) < len(expected); {
		text := readLines(t, in, 1)[0]
		if text == line("probe-1", 51) { // it was sent together with others
			continue
		}
		if known[text] = true; !known[expected[len(known)-1]] {
			t.Fatalf("%d documents are received, not the first ones: %v", len(known), known)
		}
	}
	d.Close()
	if err := all.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestSocketThatReadsNothing checks that documents wait, however many they are, and arrive when
// the receiver reads.
func TestSocketThatReadsNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	l := listenAt(t, path)
	all := OpenQueues(Rules{AnySocket}, nil, quiet())
	d := to(t, all, "unix://"+path)
	const many = mostWaiting - 10
	for n := range many {
		send(d, value(n+1))
	}
	eventually(t, "the failure shows", func() bool { return strings.Contains(all.States("probe-1")[0].Failure, "does not read") })
	_, in := accept(t, l)
	for n := range many {
		if got := readLines(t, in, 1)[0]; got != line("probe-1", n+1) {
			t.Fatalf("line %d is %q", n+1, got)
		}
	}
	eventually(t, "all are delivered", func() bool { return all.States("probe-1")[0].Waiting == 0 })
	d.Close()
	if err := all.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestDatagramSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	all := OpenQueues(Rules{AnySocket}, nil, quiet())
	d := to(t, all, "unix://"+path)
	long := value(1)
	long.Value = strings.Repeat("1", 1<<20)
	send(d, long)
	for n := range 50 {
		send(d, value(n+2))
	}
	buffer := make([]byte, 1<<16)
	for n := range 50 {
		size, err := c.Read(buffer)
		want := line("probe-1", n+2)
		if n == 0 { // the first one does not fit into a datagram
			want = strings.Replace(want, `lost="0"`, `lost="1"`, 1)
		}
		if got := string(buffer[:size]); err != nil || got != want {
			t.Fatalf("datagram %d is %q, %v; want %q", n+1, got, err, want)
		}
	}
	d.Close()
	if err := all.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestSocketsOfOthers checks that a gateway of root connects with the rights of the user that
// made the request, and follows no symbolic link.
func TestSocketsOfOthers(t *testing.T) {
	const uid = 65534
	base, err := os.MkdirTemp("/var/tmp", "deliver") // t.TempDir is closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	for _, name := range []string{"own", "secret"} {
		listenAt(t, filepath.Join(base, name))
	}
	for _, err := range []error{
		os.Chmod(base, 0o755), os.Chown(filepath.Join(base, "own"), uid, uid), os.Chmod(filepath.Join(base, "own"), 0o600), os.Chmod(filepath.Join(base, "secret"), 0o600),
		os.Symlink("own", filepath.Join(base, "link")), syscall.Mkfifo(filepath.Join(base, "fifo"), 0o666), os.WriteFile(filepath.Join(base, "file"), nil, 0o666),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	all := OpenQueues(Rules{AnySocket}, nil, quiet())
	for name, why := range map[string]string{
		"own": "", "secret": "permission denied", "link": "symbolic link", "fifo": "is no socket", "file": "is no socket", "missing": "no such file", "": "is no socket",
	} {
		err := all.Try(parsed(t, "unix://"+filepath.Join(base, name)), User{UID: uid})
		if (err == nil) != (why == "") || err != nil && !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %q", name, err, why)
		}
	}
}

// TestHostileServers checks that servers that never answer, answer byte by byte, or without
// end take no more than the time of a request.
func TestHostileServers(t *testing.T) {
	for name, answer := range map[string]func(net.Conn){
		"silent": func(c net.Conn) { time.Sleep(time.Minute) },
		"byte by byte": func(c net.Conn) {
			for range 10_000 {
				if _, err := c.Write([]byte("H")); err != nil {
					return
				}
				time.Sleep(time.Millisecond)
			}
		},
		"endless header": func(c net.Conn) {
			c.Write([]byte("HTTP/1.1 200 OK\r\n"))
			for {
				if _, err := c.Write([]byte("X-Header: " + strings.Repeat("x", 1000) + "\r\n")); err != nil {
					return
				}
			}
		},
		"endless": func(c net.Conn) {
			c.Write([]byte("HTTP/1.1 500 Error\r\n\r\n"))
			for {
				if _, err := c.Write(make([]byte, 1000)); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					t.Cleanup(func() { c.Close() })
					go answer(c)
				}
			}()
			url := "http://" + l.Addr().String()
			all := OpenQueues(Rules{url}, newMemory(), quiet())
			all.answerTime = 200 * time.Millisecond
			d := to(t, all, url)
			send(d, value(1))
			eventually(t, "the failure shows", func() bool { return all.States("probe-1")[0].Failure != "" })
			send(d, value(2))
			if state := all.States("probe-1")[0]; state.Waiting != 2 || state.Lost != 0 {
				t.Errorf("the state is %+v", state)
			}
			all.stop()
			for _, q := range all.list {
				<-q.ended
			}
		})
	}
}
