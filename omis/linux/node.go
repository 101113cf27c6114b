//go:build linux && amd64

package linux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/code/x86/landing"
	"mirador/omis/host/calls"
	"mirador/omis/host/heap"
	"mirador/omis/host/machine"
	"mirador/omis/host/perf"
	"mirador/omis/host/proc"
	"mirador/omis/host/prototype"
	"mirador/omis/linux/criu"
	"mirador/omis/linux/library"
	"mirador/omis/linux/ptrace"
	"mirador/omis/linux/unwind"
	"mirador/omis/linux/warden"
	"mirador/omis/node"
	"mirador/omis/program"
)

// Config configures a node.
type Config struct {
	Name string // "": the host's name

	// Warden is the command that runs warden.Run on its standard input. Without it,
	// breakpoints of a killed monitor stay in the text, and targets pass them by their
	// resident handler.
	Warden []string

	// Ptrace allows threads to be held by ptrace only: no jump is written into any program.
	Ptrace bool

	// Sharing leaves the first instruction of every function to the uprobes of other tools:
	// no jump is written there.
	Sharing bool

	// Patience bounds the time for which a thread that is held by rendezvous waits for a
	// monitor that does not run, for example because it is stopped; 0 means DefaultPatience.
	Patience time.Duration

	// Prototypes are files and folders with prototypes of library functions (see package
	// prototype), for libraries without debug information.
	Prototypes []string

	// CRIU is the program that saves and restores processes; "" means the one beside this
	// program's file, or in the PATH.
	CRIU string
	// Checkpoints is the folder of checkpoints; "" means one in the user's cache. Nodes
	// between which processes are migrated must share it.
	Checkpoints string
}

// Node is this machine, as the engine sees it. Its methods, and those of its parts, may be
// called from any goroutine.
type Node struct {
	name  string
	start time.Time

	owners      owners
	identities  identities
	released    released
	grounds     grounds
	exits       exits
	sched       scheduling
	stacks      stackReader
	goPrograms  goPrograms
	checkpoints checkpoints

	warden  *warden.Client
	images  *unwind.Images
	codes   *landing.Catalog
	library *library.Catalog
	machine *machine.Machine
	reader  *proc.Reader
	heaps   *heap.Reader
	meters  *meters

	byPtrace     bool          // Config.Ptrace
	sharing      bool          // Config.Sharing
	patience     time.Duration // Config.Patience
	marks        bool          // calls that threads make for the monitor are marked, see calls.Mark
	callPatience time.Duration // see the constant

	watches atomic.Uint64 // number of watches set so far
	lives   atomic.Uint64 // number of threads whose beginning was observed (node.Hit.Life)
}

var (
	_ node.Node             = (*Node)(nil)
	_ program.TimingChecker = (*Node)(nil)
	_ node.Neighbours       = (*Node)(nil)
)

// Open makes the node.
func Open(c Config) (*Node, error) {
	if c.Name == "" {
		name, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("cannot name the node: %w", err)
		}
		c.Name = name
	}
	if err := errors.Join(ptrace.Interrupting(bell), ptrace.Quiet()); err != nil {
		return nil, fmt.Errorf("cannot prepare for tracing: %w", err)
	}
	m, err := machine.Open(c.Name)
	if err != nil {
		return nil, err
	}
	n := &Node{
		name: c.Name, start: time.Now(),
		warden: warden.NewClient(c.Warden), images: unwind.NewImages(), codes: landing.NewCatalog(),
		library: library.NewCatalog(), machine: m, reader: proc.NewReader(0),
		byPtrace: c.Ptrace, sharing: c.Sharing, patience: c.Patience, callPatience: callPatience,
	}
	n.owners.n, n.owners.byProc, n.owners.births = n, make(map[omis.ProcID]*owner), make(map[int]*birth)
	n.identities.byPID = make(map[int]identity)
	n.released.byProc = make(map[omis.ProcID]map[threadID]struct{})
	n.grounds.n, n.grounds.byProc = n, make(map[omis.ProcID]*ground)
	n.checkpoints = checkpoints{n: n, finder: criu.Finder{Named: c.CRIU}, folder: c.Checkpoints}
	n.exits.n, n.stacks.n, n.goPrograms.n = n, n, n
	n.meters = &meters{perf.New(), n.reader}
	n.heaps = heap.NewReader(n.goPrograms.isGo)
	var kernel unix.Utsname
	if unix.Uname(&kernel) == nil {
		n.marks = calls.Marks(unix.ByteSliceToString(kernel.Release[:]))
	}
	if n.patience == 0 {
		n.patience = DefaultPatience
	}
	n.sched.node = n
	files, err := prototype.ReadFiles(c.Prototypes)
	if err == nil {
		err = n.Describe(files...)
	}
	if err != nil {
		m.Close()
		return nil, err
	}
	return n, nil
}

// Describe adds prototypes of functions, which later watches use. If a file has errors,
// nothing is added.
func (n *Node) Describe(files ...prototype.File) error { return n.library.Describe(files...) }

func (n *Node) Name() string { return n.name }

// Codes returns what is known of the code of files, for others that judge places in it.
func (n *Node) Codes() *landing.Catalog { return n.codes }

// Now returns the time of the node's clock: monotonic nanoseconds since it was opened.
func (n *Node) Now() int64 { return int64(time.Since(n.start)) }

// monotonic returns the time of CLOCK_MONOTONIC, which the kernel's events have.
func (n *Node) monotonic() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // every Linux has this clock
	return ts.Nano()
}

func (n *Node) since(t int64) time.Duration { return time.Duration(n.Now() - t) }

func (n *Node) ProcInfo(p omis.ProcID, f node.ProcFields) (node.ProcInfo, error) {
	info, err := n.reader.Info(p, f)
	if err == nil && f&node.ProcHeap != 0 {
		if used, ok := n.heaps.Used(p); ok {
			info.Heap = used
		}
	}
	return info, err
}

func (n *Node) Threads(p omis.ProcID) ([]int, error) {
	return n.reader.Threads(p)
}

func (n *Node) Modules(p omis.ProcID) ([]node.Module, error) { return proc.Modules(p) }

func (n *Node) ReadMemory(p omis.ProcID, addr uint64, buf []byte) (int, error) {
	if err := proc.Alive(p); err != nil {
		return 0, err
	}
	count, err := proc.ReadMemory(p.PID, addr, buf)
	if o := n.owners.of(p); o != nil {
		o.veil.hide(addr, buf[:count])
	}
	if g := n.grounds.of(p); g != nil {
		g.site.Hide(addr, buf[:count])
	}
	return count, err
}

func (n *Node) Signal(p omis.ProcID, sig int) error {
	fd, err := openProcess(p)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	err = unix.PidfdSendSignal(fd, unix.Signal(sig), nil, 0)
	return signalError(err, sig, fmt.Sprintf("process %d", p.PID), ended(p.PID))
}

// openProcess opens a pidfd of this process, and of no later one with its pid.
func openProcess(p omis.ProcID) (int, error) {
	fd, err := unix.PidfdOpen(p.PID, unix.PIDFD_NONBLOCK)
	if err != nil {
		return -1, ended(p.PID)
	}
	if err := proc.Alive(p); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func (n *Node) Stop(p omis.ProcID, tids []int) error {
	return n.owners.ask(p, haltThreads{tids, (*halts).halt})
}

func (n *Node) Continue(p omis.ProcID, tids []int) error {
	if n.owners.of(p) == nil {
		return proc.Alive(p) // no thread of it is stopped
	}
	return n.owners.ask(p, haltThreads{tids, (*halts).unhalt})
}

// Watch: see node.Node. A watch on the end of a process needs no tracing, unless it has Hold.
func (n *Node) Watch(w node.Watch, handle func(*node.Hit)) (cancel func() error, err error) {
	set := &watch{Watch: w, handle: handle, number: n.watches.Add(1)}
	switch w.Event {
	case node.EventProcTerminated:
		if w.Hold {
			return n.exits.watchHeldExit(set)
		}
		return n.exits.watchExit(set)
	case node.EventReachedAddr, node.EventThreadCreated, node.EventThreadTerminated, node.EventProcCreated,
		node.EventSignal, node.EventStepped, node.EventSteppedOver, node.EventThreadStopped, node.EventThreadContinued:
	case node.EventLibCallStarted, node.EventLibCallEnded:
		if err := n.findLibraryCalls(set); err != nil {
			return nil, unlessEnded(w.Proc, err)
		}
	case node.EventScheduled, node.EventDescheduled, node.EventBlocked, node.EventBlockedOnIO, node.EventUnblocked:
		return n.sched.watch(set)
	case node.EventSysCallStarted, node.EventSysCallEnded:
		if set.call, err = callNumber(w.Name); err != nil {
			return nil, err
		}
		_, set.file = calls.Split(w.Name)
	default:
		return nil, n.CanDetect(w.Event)
	}
	if err := n.owners.ask(w.Proc, setWatch{set}); err != nil {
		return nil, unlessEnded(w.Proc, err)
	}
	return func() error { return n.unwatch(set) }, nil
}

// unlessEnded returns err, or the error that the process has ended if it has: any operation on
// it may have failed for that reason.
func unlessEnded(p omis.ProcID, err error) error {
	if proc.Alive(p) != nil {
		return ended(p.PID)
	}
	return err
}

var _ node.CallNames = (*Node)(nil)

// CheckCall: see node.CallNames.
func (n *Node) CheckCall(name string) error {
	_, err := callNumber(name)
	return err
}

func (n *Node) unwatch(w *watch) error {
	if n.owners.of(w.Proc) == nil {
		return nil // the process has ended
	}
	if err := n.owners.ask(w.Proc, endWatch{w}); !isEnded(err) {
		return err
	}
	return nil
}

func isEnded(err error) bool { return omis.StatusOf(err) == omis.UnknownObject }

// Close: see node.Node.
func (n *Node) Close(ctx context.Context) error {
	n.owners.close()
	n.exits.close()
	n.sched.close()
	n.machine.Close()
	n.reader.Close()
	done := make(chan struct{})
	go func() {
		n.owners.running.Wait()
		n.warden.Close()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("cannot let go of all processes: %w", ctx.Err())
	}
}
