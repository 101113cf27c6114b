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

// ownSession starts a process in a session of its own. CRIU cannot restore a session whose terminal is
// gone, or whose leader is in another pid namespace.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// startShellChain starts a chain whose parent is a shell, which reaps it immediately.
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

// length returns the number of steps of the first chain.
func (c *chain) length(t testing.TB) uint64 { return c.word(t, c.chains) }

// steps returns the number of steps of all chains.
func (c *chain) steps(t testing.TB) (n uint64) {
	t.Helper()
	for i := range c.threads {
		n += c.word(t, c.chains+16*uint64(i))
	}
	return n
}

// check stops the process and verifies its chains.
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

// grows waits until the chain has grown, which shows that the process runs.
func (c *chain) grows(t testing.TB) {
	t.Helper()
	before := c.length(t)
	eventually(t, "the chain grows", func() bool { return c.length(t) > before+10 })
}

// awaitStop waits until a SIGSTOP has stopped every thread. A thread that the node holds before the stop
// has the same state for a moment, so a single look is not enough.
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

// awaitRest waits until the chains do not grow any more, and returns the number of steps. On a busy machine
// a thread may be held for a hit, before its stop, for longer than awaitStop looks.
func (c *chain) awaitRest(t testing.TB) uint64 {
	t.Helper()
	steps, same := c.steps(t), 0
	eventually(t, "the chains do not grow", func() bool {
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

// belongings returns the mappings and open files of a process, which a restored process must have again.
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
