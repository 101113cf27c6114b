package cli

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// cable connects a socket with another one, and can be cut.
type cable struct {
	socket, to string

	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

func layCable(t *testing.T, dir, to string) *cable {
	t.Helper()
	c := &cable{socket: filepath.Join(dir, "cable.sock"), to: to}
	l, err := net.Listen("unix", c.socket)
	if err != nil {
		t.Fatal(err)
	}
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			c.join(from, &accepting)
		}
	})
	t.Cleanup(func() {
		l.Close()
		c.set(true)
		accepting.Wait()
	})
	return c
}

func (c *cable) join(from net.Conn, copying *sync.WaitGroup) {
	c.mu.Lock()
	defer c.mu.Unlock()
	to, err := net.Dial("unix", c.to)
	if err != nil || c.cut {
		from.Close()
		if err == nil {
			to.Close()
		}
		return
	}
	c.conns = append(c.conns, from, to)
	for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
		copying.Go(func() {
			io.Copy(pair[0], pair[1]) // until one end is closed
			pair[0].Close()
			pair[1].Close()
		})
	}
}

// set cuts or repairs the cable.
func (c *cable) set(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = cut
	for _, conn := range c.conns {
		conn.Close()
	}
	c.conns = nil
}

// TestSessionReconnects checks that a session whose connection breaks prints every reply once, and
// that a session that reconnects to another gateway reports lost replies.
func TestSessionReconnects(t *testing.T) {
	s := startServe(t, os.Geteuid())
	c := layCable(t, s.dir, s.socket)
	far := *s
	far.socket = c.socket
	x := far.listen(t, "far")
	near := &tool{s, "far", x.out}
	near.ask(t, ": user_event_create()")
	near.ask(t, "user_event_has_been_raised([e_1]) : print([\"raised\", $par1])")
	near.ask(t, ": csr_enable([])")
	raise := func(from, to int) {
		for n := from; n <= to; n++ {
			near.ask(t, fmt.Sprintf(": user_event_raise(e_1, [%d], 0)", n))
		}
	}
	const raised = `\["raised",(\d+)\]`
	raise(1, 3)
	x.await(t, 3, raised)
	c.set(true)
	x.await(t, 1, "(?m)^note: the stream of replies broke off")
	raise(4, 6)
	c.set(false)
	x.await(t, 1, "(?m)^note: the stream of replies is connected again")
	raise(7, 9)
	var got []string
	for _, m := range x.await(t, 9, raised) {
		got = append(got, m[1])
	}
	if want := "1 2 3 4 5 6 7 8 9"; strings.Join(got, " ") != want {
		t.Errorf("replies %v, want %s", got, want)
	}
	s.end(t)
	s.await(t, s.begin(t))
	x.await(t, 1, "the replies of an earlier gateway")
}
