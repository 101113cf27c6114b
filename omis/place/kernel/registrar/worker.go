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
	ended   chan struct{} // closed when the process has, and all that it held is gone

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan result
}

// result is an answer with the descriptor that came with it, or -1.
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
	cmd.Dir = "/" // holds no file system busy
	// A session of its own: what ends the monitor's process group must not end it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		conn.Close()
		return nil, err
	}
	w := &worker{conn: conn, process: cmd.Process, ended: make(chan struct{}), waiting: make(map[uint64]chan result)}
	go w.attend(cmd)
	return w, nil
}

// attend hands answers out until the registrar has ended.
func (w *worker) attend(cmd *exec.Cmd) {
	defer close(w.ended)
	in := &receiver{conn: w.conn}
	for {
		var a answer
		fd, err := in.receive(&a)
		if errors.Is(err, unix.ECONNRESET) {
			continue // it has not read all requests; what it has answered comes yet
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

// dismiss tells the registrar by the end of the socket that there is no more to do.
func (w *worker) dismiss() {
	defer w.keepAwake()()
	w.conn.Close()
	<-w.ended
}

// awakeEvery is how often a registrar is set going that somebody may have stopped. It
// cannot be replaced: to be killed is what it must be spared.
const awakeEvery = time.Second

// keepAwake sees to it, until the function it returns is called, that the registrar
// runs.
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

// number is that of the next request.
func (w *worker) number() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last++
	return w.last
}

// ask sends a request, with a descriptor unless that is negative, and waits for its
// answer. The error is ErrKilled where none will come.
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
	case r := <-told: // it came with the end
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

// send sends a request. Where nobody is there to read it, it returns when the registrar
// has ended.
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

// handle is a link that a registrar holds beside its owner.
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

// takeOut has the registrar let go of the link, which its owner has done.
func (h *handle) takeOut() error {
	_, err := h.worker.ask(request{Number: h.number, Verb: takeOut}, -1)
	return err
}
