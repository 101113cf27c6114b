//go:build linux

package registrar

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// worker is one registrar, as the monitor sees it.
type worker struct {
	conn    *net.UnixConn
	process *os.Process
	ended   chan struct{} // closed when the process has ended and the kernel has closed its links

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan result
}

// result is an answer with its descriptor, or -1.
type result struct {
	answer
	fd int
}

func start(argv []string) (*worker, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "registrar"), os.NewFile(uintptr(pair[1]), "monitor")
	defer ours.Close() // the connection has a descriptor of its own
	defer theirs.Close()
	conn, err := connect(ours)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin = theirs
	cmd.Dir = "/" // keeps no file system busy
	// in a session of its own: a signal to the process group of the monitor must not end it
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		conn.Close()
		return nil, err
	}
	w := &worker{conn: conn, process: cmd.Process, ended: make(chan struct{}), waiting: make(map[uint64]chan result)}
	go w.attend(cmd)
	return w, nil
}

// attend passes answers on until the registrar has ended.
func (w *worker) attend(cmd *exec.Cmd) {
	defer close(w.ended)
	in := &receiver{conn: w.conn}
	for {
		var a answer
		fd, err := in.receive(&a)
		if errors.Is(err, unix.ECONNRESET) {
			continue // the registrar has ended without reading all requests; its last answers are still to be read
		}
		if err != nil {
			break
		}
		w.mu.Lock()
		to := w.waiting[a.Number]
		delete(w.waiting, a.Number)
		w.mu.Unlock()
		to <- result{a, fd}
	}
	w.conn.Close()
	_ = cmd.Wait() // how it ended makes no difference
}

func (w *worker) hasEnded() bool {
	select {
	case <-w.ended:
		return true
	default:
		return false
	}
}

// dismiss closes the socket, which tells the registrar to end.
func (w *worker) dismiss() {
	defer w.keepAwake()()
	w.conn.Close()
	<-w.ended
}

// awakeEvery is how often the monitor sends SIGCONT to a registrar that it waits for, in case another
// process has stopped it. The monitor cannot replace a stopped registrar, because it would have to kill
// it.
const awakeEvery = time.Second

// keepAwake sends SIGCONT regularly until the returned function is called.
func (w *worker) keepAwake() (enough func()) {
	done := make(chan struct{})
	go func() {
		ticker := time.NewTicker(awakeEvery)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				_ = w.process.Signal(unix.SIGCONT) // it may have ended
			}
		}
	}()
	return func() { close(done) }
}

// number returns the number of the next request.
func (w *worker) number() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last++
	return w.last
}

// ask sends a request and waits for its answer. fd is a descriptor to send, or negative. The error is
// ErrKilled if the registrar has ended.
func (w *worker) ask(q request, fd int) (result, error) {
	defer w.keepAwake()()
	told := make(chan result, 1)
	w.mu.Lock()
	w.waiting[q.Number] = told
	w.mu.Unlock()
	if err := w.send(q, fd); err != nil {
		return result{}, err
	}
	select {
	case r := <-told:
		return r, r.err()
	case <-w.ended:
	}
	select {
	case r := <-told: // the answer came just before the end
		return r, r.err()
	default:
		return result{}, ErrKilled
	}
}

func (r *result) err() error {
	if r.Failed == nil {
		return nil
	}
	return r.Failed
}

// send sends a request. If the registrar has ended, send returns when all its links are closed.
func (w *worker) send(q request, fd int) error {
	err := send(w.conn, q, fd)
	if err == nil || !isOfPeer(err) {
		return err
	}
	<-w.ended
	return ErrKilled
}

func (w *worker) set(q request, program int) (link.Link, error) {
	q.Number = w.number()
	r, err := w.ask(q, program)
	switch {
	case err != nil:
		return nil, err
	case r.fd < 0:
		return nil, errNoDescriptor
	}
	return link.NewFromFD(r.fd)
}

// handle is a link that a registrar holds in addition to the monitor.
type handle struct {
	worker *worker
	number uint64
}

func (w *worker) hold(l link.Link) (*handle, error) {
	fd, err := descriptorOf(l)
	if err != nil {
		return nil, err
	}
	defer w.keepAwake()()
	h := &handle{w, w.number()}
	return h, w.send(request{Number: h.number, Verb: hold}, fd)
}

// takeOut makes the registrar close the link. The monitor has closed its own descriptor before.
func (h *handle) takeOut() error {
	_, err := h.worker.ask(request{Number: h.number, Verb: takeOut}, -1)
	return err
}
