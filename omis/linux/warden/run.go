//go:build linux && amd64

package warden

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// processName is the name of a warden in ps.
const processName = "mirador-warden"

// Run is the main loop of a warden process: conn is the socket that it gets as standard
// input. Run returns when the monitor is gone and everything is restored.
func Run(conn *os.File) error {
	// prctl would name this thread, which may not be the first one of the process.
	if err := os.WriteFile("/proc/self/comm", []byte(processName), 0); err != nil {
		return fmt.Errorf("cannot name the warden: %w", err)
	}
	w := guard{targets: make(map[int]*target), stills: make(map[int]*os.File)}
	defer w.wake()
	defer w.restore()
	for {
		m, file, err := receive(int(conn.Fd()))
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot receive from the monitor: %w", err)
		}
		w.take(m, file)
	}
}

// guard is the state of a warden. One goroutine uses it.
type guard struct {
	targets map[int]*target
	stills  map[int]*os.File // pidfds
}

type target struct {
	memory  *os.File
	planted map[uint64]Patch
}

func (g *guard) take(m message, file *os.File) {
	t := g.targets[m.pid]
	switch {
	case m.verb == hold && file != nil:
		g.drop(m.pid)
		g.targets[m.pid] = &target{memory: file, planted: make(map[uint64]Patch)}
	case m.verb == plant && t != nil:
		t.planted[m.addr] = m.Patch
	case m.verb == clear && t != nil:
		delete(t.planted, m.addr)
	case m.verb == drop:
		g.drop(m.pid)
	case m.verb == still && file != nil:
		g.release(m.pid)
		g.stills[m.pid] = file
	case m.verb == moving:
		g.release(m.pid)
	}
}

func (g *guard) drop(pid int) {
	if t := g.targets[pid]; t != nil {
		t.memory.Close()
		delete(g.targets, pid)
	}
}

// restore writes the original bytes where patches are in place. The memory of a process
// that has ended or executed another program is gone; that is not an error.
func (g *guard) restore() {
	for pid, t := range g.targets {
		for addr, p := range t.planted {
			p.remove(t.memory, addr)
		}
		g.drop(pid)
	}
}

// remove removes a patch while threads may execute it, by writing the whole machine word
// at once. If the next monitor has already removed the patch, a breakpoint there now
// belongs to another tool, for example to a uprobe.
func (p Patch) remove(memory *os.File, addr uint64) {
	if p.Mark != 0 {
		var mark [1]byte
		if _, err := memory.ReadAt(mark[:], int64(p.Mark)); err != nil || mark[0] == 0 {
			return
		}
		defer memory.WriteAt([]byte{0}, int64(p.Mark))
	}
	const size = 8
	var word [size]byte
	begin, at := addr&^(size-1), addr%size
	if _, err := memory.ReadAt(word[:], int64(begin)); err != nil || !bytes.HasPrefix(word[at:], p.Standing) {
		return
	}
	copy(word[at:], p.Displaced)
	memory.WriteAt(word[:], int64(begin))
}

// receive reads one datagram and the file that came with it, if any.
func receive(fd int) (message, *os.File, error) {
	buf, oob := make([]byte, maxMessage), make([]byte, unix.CmsgSpace(4))
	n, oobn, err := receiveAll(fd, buf, oob)
	if err != nil {
		return message{}, nil, err
	}
	if n == 0 {
		return message{}, nil, io.EOF
	}
	m, err := decode(buf[:n])
	return m, fileOf(oob[:oobn]), err
}

func receiveAll(fd int, buf, oob []byte) (n, oobn int, err error) {
	for {
		n, oobn, _, _, err = unix.Recvmsg(fd, buf, oob, unix.MSG_CMSG_CLOEXEC)
		if err != unix.EINTR {
			return n, oobn, err
		}
	}
}

func fileOf(oob []byte) *os.File {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(msgs) == 0 {
		return nil
	}
	fds, err := unix.ParseUnixRights(&msgs[0])
	if err != nil || len(fds) == 0 {
		return nil
	}
	return os.NewFile(uintptr(fds[0]), "target")
}
