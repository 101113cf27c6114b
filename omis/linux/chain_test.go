//go:build linux && amd64

package linux

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/proc"
)

// chain is a running chain.c.
type chain struct {
	*target
	threads           int
	chains, continued uint64
}

func startChain(t testing.TB, threads int) *chain {
	t.Helper()
	return newChain(t, startWith(t, ownSession(), build(t, "chain.c"), fmt.Sprint(threads)), threads)
}

// ownSession has a process depend on nothing of whoever runs the tests: not on a
// terminal, without which its session could not be restored, nor on a leader of
// the session, who may be in another namespace.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// startShellChain starts one whose parent is a shell, which takes notice of its
// end at once.
func startShellChain(t testing.TB, threads int) *chain {
	t.Helper()
	c := newChain(t, startWith(t, ownSession(), "/bin/sh", "-c", `"$0" "$1" & wait`, build(t, "chain.c"), fmt.Sprint(threads)), threads)
	t.Cleanup(func() { unix.Kill(c.ID.PID, unix.SIGKILL) })
	return c
}

func newChain(t testing.TB, g *target, threads int) *chain {
	t.Helper()
	c := &chain{target: g, threads: threads}
	var pid int
	if _, err := fmt.Sscanf(c.Line(), "chains %v %v %d", &c.chains, &c.continued, &pid); err != nil {
		t.Fatal(err)
	}
	var err error
	if c.ID, err = procIdentify(pid); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the chains grow", func() bool { return c.length(t) > 10 })
	return c
}

func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patienceOfTests); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

func (c *chain) word(t testing.TB, addr uint64) uint64 {
	t.Helper()
	b := make([]byte, 8)
	if _, err := proc.ReadMemory(c.ID.PID, addr, b); err != nil {
		t.Fatal(err)
	}
	return binary.LittleEndian.Uint64(b)
}

// length is how far the first chain is.
func (c *chain) length(t testing.TB) uint64 { return c.word(t, c.chains) }

// steps are how many the threads have made together.
func (c *chain) steps(t testing.TB) (n uint64) {
	t.Helper()
	for i := range c.threads {
		n += c.word(t, c.chains+16*uint64(i))
	}
	return n
}

// check verifies the chains, while the process is stopped.
func (c *chain) check(t testing.TB, n *Node, p omis.ProcID) {
	t.Helper()
	if err := n.Stop(p, nil); err != nil {
		t.Fatal(err)
	}
	for i := range c.threads {
		length, value := c.word(t, c.chains+16*uint64(i)), c.word(t, c.chains+16*uint64(i)+8)
		var v uint64
		for range length {
			v = v*6364136223846793005 + 1442695040888963407
		}
		if ahead := v*6364136223846793005 + 1442695040888963407; value != v && value != ahead {
			t.Errorf("chain %d is %#x after %d steps, not %#x", i, value, length, v)
		}
	}
	if err := n.Continue(p, nil); err != nil {
		t.Fatal(err)
	}
}

// grows tells that the process is at work.
func (c *chain) grows(t testing.TB) {
	t.Helper()
	before := c.length(t)
	eventually(t, "the chain goes on", func() bool { return c.length(t) > before+10 })
}

// awaitStop waits until another's SIGSTOP has stopped every thread: neither on its
// way to the stop, nor held by us before it, which looks the same for a moment.
func (c *chain) awaitStop(t testing.TB) {
	t.Helper()
	tids, err := proc.Threads(c.ID.PID)
	if err != nil {
		t.Fatal(err)
	}
	for _, tid := range tids {
		stood := 0
		eventually(t, "the thread stops", func() bool {
			state, _ := proc.ThreadState(c.ID.PID, tid)
			if stood++; state != "T" && state != "t" {
				stood = 0
			}
			return stood == 20
		})
	}
}

// awaitRest waits until the chains rest, and says after how many steps they do: on a busy
// machine a thread may be held for a hit, and not be at its stop yet, for longer than
// awaitStop looks.
func (c *chain) awaitRest(t testing.TB) uint64 {
	t.Helper()
	steps, same := c.steps(t), 0
	eventually(t, "the chains rest", func() bool {
		before := steps
		time.Sleep(200 * time.Millisecond)
		if steps = c.steps(t); steps != before {
			same = 0
		} else {
			same++
		}
		return same == 5
	})
	return steps
}

// kill ends the process and waits until its pid is free.
func (c *chain) kill(t testing.TB) {
	t.Helper()
	unix.Kill(c.ID.PID, unix.SIGKILL)
	c.Cmd.Wait()
}

// belongings are what a restored process must have again: mappings and open
// files.
func belongings(t testing.TB, pid int) string {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	list := []string{string(maps)}
	for _, fd := range fds {
		to, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, fd.Name()))
		kind, _, _ := strings.Cut(to, ":") // pipes get new numbers
		list = append(list, fd.Name()+" "+kind)
	}
	return strings.Join(list, "\n")
}
