//go:build linux

package registrar

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Run is the main loop of a registrar. The monitor passes the socket as the standard input. Run returns
// when the monitor has ended and all work is done.
func Run(socket *os.File) error {
	// Signals that end a service or the programs of a terminal are meant for the monitor.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	conn, err := connect(socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	r := &registry{conn: conn, held: make(map[uint64]link.Link)}
	err = r.serve()
	r.busy.Wait()
	// The end of the process closes the links, too; but only after Close is it certain that the uprobes are
	// removed.
	for _, l := range r.held {
		err = errors.Join(err, l.Close())
	}
	return err
}

// registry is the state of a registrar.
type registry struct {
	conn *net.UnixConn
	busy sync.WaitGroup
	held map[uint64]link.Link // links that will be removed; only the goroutine that reads requests uses the map
}

// serve executes requests until the monitor has ended.
func (r *registry) serve() error {
	in := &receiver{conn: r.conn}
	for {
		var q request
		fd, err := in.receive(&q)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, unix.ECONNRESET):
			continue // the monitor has ended without reading all answers; its last requests are still to be read
		}
		if err != nil {
			return fmt.Errorf("cannot hear from the monitor: %w", err)
		}
		r.take(q, fd)
	}
}

func (r *registry) take(q request, fd int) {
	switch q.Verb {
	case set:
		r.busy.Go(func() { r.set(q, fd) })
	case hold:
		if fd >= 0 {
			r.hold(q, fd)
		}
	case takeOut:
		l := r.held[q.Number]
		delete(r.held, q.Number)
		r.busy.Go(func() { r.takeOut(q, l) })
	}
}

// set makes a link and sends it to the monitor. From then on the monitor owns it, even if it dies before it
// reads the answer. If the monitor has ended already, set removes the uprobes.
func (r *registry) set(q request, fd int) {
	l, err := q.uprobes(fd)
	if err != nil {
		r.answer(q, err, -1)
		return
	}
	defer l.Close() // the last process that closes the link removes the uprobes
	made, err := descriptorOf(l)
	r.answer(q, err, made)
}

func (q *request) uprobes(fd int) (link.Link, error) {
	if fd < 0 {
		return nil, errNoDescriptor
	}
	program, err := ebpf.NewProgramFromFD(fd)
	if err != nil {
		return nil, err
	}
	defer program.Close() // the link keeps the program
	u := Uprobes{program, q.PID, q.Path, q.Offsets, q.Cookies}
	return u.set()
}

func (r *registry) hold(q request, fd int) {
	if l, err := link.NewFromFD(fd); err == nil {
		r.held[q.Number] = l
	}
}

// takeOut closes a link, as the last process that has it.
func (r *registry) takeOut(q request, l link.Link) {
	if l == nil {
		r.answer(q, errNoDescriptor, -1)
		return
	}
	r.answer(q, l.Close(), -1)
}

// answer sends an answer, if the monitor still runs.
func (r *registry) answer(q request, err error, fd int) {
	_ = send(r.conn, answer{q.Number, failureOf(err)}, fd)
}
