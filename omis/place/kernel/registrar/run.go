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

// Run is the main loop of a registrar: conn is the socket that its monitor gave it as
// standard input. It returns when the monitor is gone and nothing is left to do.
func Run(socket *os.File) error {
	// Whoever ends a service, or what runs on a terminal, means the monitor.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	conn, err := connect(socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	r := &registry{conn: conn, held: make(map[uint64]link.Link)}
	err = r.serve()
	r.busy.Wait()
	// To end lets go of descriptors too; but whoever lets go in peace knows that it is done.
	for _, l := range r.held {
		err = errors.Join(err, l.Close())
	}
	return err
}

// registry is what a registrar has in hand.
type registry struct {
	conn *net.UnixConn
	busy sync.WaitGroup
	held map[uint64]link.Link // about to be taken out; of the goroutine that takes requests
}

// serve does what it is asked until the monitor is gone.
func (r *registry) serve() error {
	in := &receiver{conn: r.conn}
	for {
		var q request
		fd, err := in.receive(&q)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, unix.ECONNRESET):
			continue // the monitor has not read all answers; what it has asked for comes yet
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

// set makes a link. When it has been sent it is the monitor's, which has it even if it
// dies before it has read the answer. If there is nobody any more to send it to, it is
// taken out here.
func (r *registry) set(q request, fd int) {
	l, err := q.uprobes(fd)
	if err != nil {
		r.answer(q, err, -1)
		return
	}
	defer l.Close() // it is broken by who closes it last
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
	defer program.Close() // the link keeps it
	u := Uprobes{program, q.PID, q.Path, q.Offsets, q.Cookies}
	return u.set()
}

func (r *registry) hold(q request, fd int) {
	if l, err := link.NewFromFD(fd); err == nil {
		r.held[q.Number] = l
	}
}

// takeOut lets go of a link, last of all.
func (r *registry) takeOut(q request, l link.Link) {
	if l == nil {
		r.answer(q, errNoDescriptor, -1)
		return
	}
	r.answer(q, l.Close(), -1)
}

// answer tells the monitor, if it is still there.
func (r *registry) answer(q request, err error, fd int) {
	_ = send(r.conn, answer{q.Number, failureOf(err)}, fd)
}
