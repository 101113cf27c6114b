//go:build linux && amd64

package rendezvous

import (
	"errors"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Server is the monitor's side of a site: it passes hits to a handler and lets the
// threads continue. Its goroutine has an OS thread of its own; when that ends, the kernel
// frees all held threads.
type Server struct {
	board   *board
	at      uint64 // address of the board in the target
	robust  *robust
	handler func(*Hit)
	spin    time.Duration
	hits    [Slots]Hit
	owner   uint32
	began   time.Time
	last    time.Duration // time of the last hit since began
	dozes   bool          // the next hit is expected soon
	holds   atomic.Int32  // threads held after their handlers
	served  atomic.Uint64
	closing atomic.Bool
	done    chan struct{}

	mu      sync.Mutex    // held while a hold ends from another goroutine
	kept    [Slots]uint64 // number of the hit that is held after its handler
	retired bool          // the board may be gone
}

// beatEvery is the interval of the heartbeat while the server holds threads; it is less
// than a nap.
const beatEvery = nap / 2

// When hits follow soon after each other, a server dozes: it waits for the next one
// without notifying Go's scheduler.
const (
	soon = 500 * time.Microsecond

	// doze is longer than a tick of the kernel. A timer that expires before the tick
	// would have to be programmed and cancelled with every hit, which in a virtual
	// machine costs as much as the rest of the hit.
	doze = 5 * time.Millisecond
)

// ErrServed is the error for a site that has a server.
var ErrServed = errors.New("the site is served already")

// Serve starts to serve a site. It calls the handler for one hit at a time, on the
// server's own goroutine. Before the server sleeps, it polls for a hit for the duration
// spin, and yields the processor meanwhile.
func Serve(s *Site, spin time.Duration, handler func(*Hit)) (*Server, error) {
	r, err := newRobust(s.memory.board)
	if err != nil {
		return nil, err
	}
	v := &Server{board: s.memory.board, at: s.at, robust: r, handler: handler, spin: spin, began: time.Now(), done: make(chan struct{})}
	for i := range v.hits {
		v.hits[i] = Hit{server: v, slot: i, Regs: &v.board.slots[i].regs}
	}
	ready := make(chan error)
	go v.run(ready)
	return v, <-ready
}

func (v *Server) run(ready chan<- error) {
	defer close(v.done)
	// Never unlocked: the thread, with its robust list, ends with the goroutine.
	runtime.LockOSThread()
	v.owner = uint32(unix.Gettid())
	err := v.robust.enter()
	if err == nil && !atomic.CompareAndSwapUint32(&v.board.owner, 0, v.owner) {
		err = ErrServed
	}
	ready <- err
	if err == nil {
		for !v.closing.Load() {
			if !v.serve() {
				v.wait()
			}
		}
		v.retire()
	}
	v.robust.leave()
}

// serve handles the hits on the board; it returns false if there were none.
func (v *Server) serve() bool {
	if atomic.LoadUint64(&v.board.pend) == 0 {
		return false
	}
	v.showAlive()
	now := time.Since(v.began) // reads one clock; time.Now reads two
	v.dozes, v.last = now-v.last < soon, now
	for set := atomic.SwapUint64(&v.board.pend, 0); set != 0; set &= set - 1 {
		v.take(bits.TrailingZeros64(set))
	}
	return true
}

// take handles one hit.
func (v *Server) take(i int) {
	slot := &v.board.slots[i]
	if atomic.LoadUint32(&slot.word)&futexTIDMask != v.owner {
		v.free(i)
		return
	}
	h := &v.hits[i]
	h.TID, h.Addr, h.taken = int(atomic.LoadUint32(&slot.tid)), slot.regs[RIP], false
	h.number = v.served.Add(1)
	v.handler(h)
	if h.taken {
		return
	}
	// If the monitor dies between the release and the wake-up, the kernel wakes the
	// thread.
	atomic.StoreUintptr(&v.robust.head.pending, v.robust.node(i))
	v.letGo(i)
	atomic.StoreUintptr(&v.robust.head.pending, 0)
}

// letGo ends a hold.
func (v *Server) letGo(i int) {
	slot := &v.board.slots[i]
	for {
		old := atomic.LoadUint32(&slot.word)
		switch {
		case old&futexTIDMask != v.owner:
			v.free(i)
			return
		case !atomic.CompareAndSwapUint32(&slot.word, old, 0):
			continue // the thread has gone to sleep, or given up
		case old&futexWaiters != 0:
			futexWake(&slot.word)
		}
		return
	}
}

// free frees a slot whose thread has given up and left.
func (v *Server) free(i int) {
	slot := &v.board.slots[i]
	if atomic.CompareAndSwapUint32(&slot.word, forsaken, 0) {
		atomic.StoreUint32(&slot.tid, 0)
	}
}

// wait sleeps until the bell changes.
func (v *Server) wait() {
	if v.poll() {
		return
	}
	b := v.board
	bell := atomic.LoadUint32(&b.bell)
	atomic.StoreUint32(&b.sleeping, 1)
	switch {
	case atomic.LoadUint64(&b.pend) != 0 || v.closing.Load():
	case v.dozes:
		v.dozes = false
		futexDoze(&b.bell, bell, doze)
	default:
		var limit time.Duration
		if v.holds.Load() > 0 {
			limit = beatEvery
		}
		futexWait(&b.bell, bell, limit)
	}
	atomic.StoreUint32(&b.sleeping, 0)
	v.showAlive()
}

// showAlive shows the target that the server runs.
func (v *Server) showAlive() {
	atomic.AddUint32(&v.board.beat, 1)
	if atomic.LoadUint32(&v.board.silent) != 0 {
		atomic.StoreUint32(&v.board.silent, 0)
	}
}

// poll polls instead of sleeping: sleep and wake-up cost more than the rest of a hit,
// most of all between processors.
func (v *Server) poll() bool {
	if v.spin == 0 {
		return false
	}
	for begin := time.Now(); time.Since(begin) < v.spin; yield() {
		if atomic.LoadUint64(&v.board.pend) != 0 || v.closing.Load() {
			return true
		}
	}
	return false
}

// retire lets all threads continue. A thread that has just read the owner sees that the
// owner changed, or continues with the others.
func (v *Server) retire() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.retired = true
	clear(v.kept[:])
	atomic.StoreUint32(&v.board.owner, 0)
	for i := range v.board.slots {
		v.letGo(i)
	}
	atomic.StoreUint64(&v.board.pend, 0)
}

// Close ends the service and lets all threads continue, including those under a Hold.
// Threads that come later are not held.
func (v *Server) Close() {
	if v.closing.Swap(true) {
		<-v.done
		return
	}
	atomic.AddUint32(&v.board.bell, 1)
	futexWake(&v.board.bell)
	<-v.done
}

// Stats counts hits.
type Stats struct {
	Served  uint64 // passed to the handler
	Full    uint64 // had to wait for a slot
	Unheld  uint64 // continued because there was no monitor, or it died
	Forsook uint64 // continued because the monitor showed no heartbeat
	Deep    uint64 // in signal handlers that interrupted holds; continued because all slots were taken
}

// Stats returns the counts of hits since the board was made.
func (v *Server) Stats() Stats {
	b := v.board
	return Stats{
		v.served.Load(), atomic.LoadUint64(&b.full), atomic.LoadUint64(&b.dead), atomic.LoadUint64(&b.gaveUp),
		atomic.LoadUint64(&b.deep),
	}
}
