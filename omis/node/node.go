package node

import (
	"cmp"
	"context"
	"time"

	"mirador/omis"
)

// Node is the monitor/program interface of one machine (OMIS 4): the operations that the
// engine calls on the node of its objects. Package linux implements it for Linux, package
// engine/fake for the engine's tests.
//
// All methods may be called from any goroutine at any time; they return when the effect
// is complete (OMIS 7.2.3: services have no delayed side effects). Errors for users are
// *Error, with the status of the reply. No method leaves a process traced, unless a
// watch, a stop or a suspension remains in it: information comes from /proc, and if a
// method must stop a thread, it continues the thread before it returns.
type Node interface {
	// Name returns the node's name, which node_attach2 takes.
	Name() string

	// Identify finds a process by its pid and reports whether it may be observed. It
	// neither traces nor disturbs the process. The error names the obstacle: another
	// user's process, a tracer, a kernel thread, a zombie.
	Identify(pid int) (omis.ProcID, error)

	// Launch starts a process and stops it before its first instruction; Continue lets it
	// run (OMIS proc_create).
	Launch(Launch) (omis.ProcID, error)

	ProcInfo(omis.ProcID, ProcFields) (ProcInfo, error)
	Threads(omis.ProcID) ([]int, error)
	ThreadInfo(p omis.ProcID, tid int, f ThreadFields) (ThreadInfo, error)
	Modules(omis.ProcID) ([]Module, error)
	// Backtraces stops the given threads once, reads up to depth frames of each (0: all)
	// and continues them. The i-th result belongs to the i-th thread.
	Backtraces(p omis.ProcID, tids []int, depth int) ([]Backtrace, error)
	ReadMemory(p omis.ProcID, addr uint64, buf []byte) (int, error)
	Signal(p omis.ProcID, sig int) error

	// Stop and Continue are idempotent (OMIS thread_stop, thread_continue). An empty list
	// means all threads, including those created later.
	Stop(p omis.ProcID, tids []int) error
	Continue(p omis.ProcID, tids []int) error

	// Watch starts to detect an event and calls handle for each occurrence: one call at a
	// time for a process, on a goroutine that serves the process. So handle must be quick
	// and must not call the node. The node calls several watches of one address in the
	// order in which they were set, with one breakpoint for all. After cancel has
	// returned, handle is not called again; after cancel of the last watch at an address,
	// the program's bytes are restored.
	Watch(w Watch, handle func(*Hit)) (cancel func() error, err error)

	// Now returns the time of the node's clock, which also stamps hits: monotonic
	// nanoseconds.
	Now() int64

	// Close cancels all watches and continues all threads.
	Close(context.Context) error
}

// Launch describes a process to start (OMIS proc_create).
type Launch struct {
	Path string
	Args []string // without the program's name
	Env  []string // nil: the monitor's environment
	IO   []string // files for stdin, stdout, stderr; "" or missing: /dev/null for stdin, else the monitor's own
	Dir  string   // "": the monitor's own
}

// EventKind is a kind of event that a node can detect.
type EventKind uint8

const (
	EventReachedAddr      EventKind = iota + 1 // thread_reached_addr
	EventProcTerminated                        // proc_has_terminated; needs no tracing without Watch.Hold
	EventThreadCreated                         // thread_creates_thread; Hit.Child is the new thread
	EventThreadTerminated                      // thread_has_terminated
	EventProcCreated                           // thread_creates_proc; Hit.Child is the new pid
)

// Watch describes the event to detect.
type Watch struct {
	Event EventKind
	Proc  omis.ProcID
	Addr  uint64 // EventReachedAddr
	// When, of EventReachedAddr, is the condition that the flags must fulfil. A node may call the handler at
	// other hits too.
	When Condition

	Name    string // of a system call or library function
	Signals []int  // EventSignal; empty: all
	// Threads restricts the watch to these threads; nil means all. A node may call the
	// handler for other threads too; the restriction lets it save single steps.
	Threads []int
	// Hold, of EventProcTerminated, asks the node to hold the process at its exit until
	// the lists are done: its times, memory and last thread can still be read then. The
	// node traces the process for that, and Watch returns an error if it cannot. If the
	// process ends in another way after all, the handler is called as without Hold.
	Hold bool
}

// Hit is one occurrence of an event. It is valid until all functions that Hold returned
// have been called; if Hold was not called, until the handler returns.
type Hit struct {
	Proc omis.ProcID
	TID  int
	// Life tells threads apart that had the same TID one after the other; 0 if the node did not observe the
	// thread's beginning.
	Life uint64
	Addr uint64
	// Flags of the processor at an address reached.
	Flags uint64
	SP    uint64 // stack pointer at an address reached; at the start of a library call, also in the hit of its end
	// Goroutine is the goroutine that reached the address, if the code is Go.
	Goroutine Goroutine
	Args      Args   // of an address reached
	Time      int64  // monotonic nanoseconds at the recognition of the event
	Child     int    // new thread or process
	ChildLife uint64 // of a new thread
	// ChildProc is the pid of a new thread's process if that is new too; 0: Proc.
	ChildProc int

	Signal int          // EventSignal
	Params []omis.Value // of a system or library call
	Peer   string       // EventNodeAdded, EventNodeRemoved: name of the added or removed node

	Queue   QueueID // EventQueueExtended
	Message Message // EventQueueExtended, EventTaggedMessage

	// Held says how the thread is held: HeldByPtrace or HeldByRendezvous; "" if the node
	// does not say or the thread is not held.
	Held string

	// Hold keeps the thread held after the handler returns, until the returned function
	// is called (once, from any goroutine).
	Hold func() (release func())
	// Now returns the time of the clock that Time was read from.
	Now func() int64
}

// Goroutine identifies the goroutine that runs on a thread. It is zero if the code is not
// Go or the thread runs no goroutine.
type Goroutine struct {
	Addr     uint64 // address of its descriptor (runtime.g), constant during its life
	StackEnd uint64 // upper end of its stack, which the runtime may move
	// Frame is the address in a frame that identifies the execution of a woven region (GoCode.Marked), 0 in
	// other code.
	Frame uint64
	// Unknown is the reason why the goroutine is not known, nil if it is.
	Unknown error
}

// StackPlace identifies a call on a stack, so that the end of an interval finds its
// beginning.
type StackPlace struct {
	// Goroutine is the address of the goroutine's descriptor; 0 if the stack belongs to
	// the thread.
	Goroutine uint64
	// SP is the stack pointer, 0 if the event has none. For a goroutine it is the
	// (negative) distance of it, or of Goroutine.Frame, from the upper end of the stack, which does not
	// change when the runtime moves the stack.
	SP uint64
	// Unknown is the reason why the owner of the stack is not known.
	Unknown error
}

// Place returns the place on the stack at which the event happened.
func (h *Hit) Place() StackPlace {
	g := h.Goroutine
	if g.Addr == 0 {
		return StackPlace{SP: h.SP, Unknown: g.Unknown}
	}
	return StackPlace{Goroutine: g.Addr, SP: cmp.Or(g.Frame, h.SP) - g.StackEnd}
}

// Args holds the registers of the first integer or address arguments of a function at its
// entry: rdi, rsi, rdx, rcx, r8, r9 on x86-64.
type Args [6]uint64

// Ways to hold a thread from the recognition of an event to the end of all action lists.
const (
	HeldByPtrace     = "ptrace"     // a ptrace stop
	HeldByRendezvous = "rendezvous" // the thread waits in shared memory
)

// ProcFields selects components of proc_get_info (OMIS 8.1.2): bit i selects the i-th
// component.
type ProcFields uint32

const (
	ProcGlobalID ProcFields = 1 << iota
	ProcArgv
	ProcUID
	ProcGID
	ProcUserArgv
	ProcEnvp
	ProcParent
	ProcMessageQueue
	ProcNode
	ProcLocalID
	ProcSchedulingState
	ProcTotalTime
	ProcPriority
	ProcSystemTime
	ProcMemorySize
	ProcResidentSize
	ProcMaxResidentSize
	ProcIntResidentSize
	ProcMinorPageFaults
	ProcMajorPageFaults
	ProcSwaps
	ProcFileInput
	ProcFileOutput
	ProcVolContSwitch
	ProcInvolContSwitch

	// OMIS does not define the components from here on: metrics of MIR need them.

	ProcUserTime
	ProcQueuedTime
	ProcReadBytes
	ProcWrittenBytes
	ProcHeap
	ProcNonHeap

	LastProcField = ProcNonHeap
)

// Scheduling states of proc_get_info and thread_get_info.
const (
	StateRunning = iota
	StateBlocked
	StateRunnable
	StateZombie
	StateStopped
)

// ProcInfo holds the selected components; the others are zero. Sizes are in
// bytes; a value that Linux does not have is -1.
type ProcInfo struct {
	Argv, Envp      []string
	UID, GID        int64
	Parent          int // pid
	State           int
	TotalTime       time.Duration
	Priority        int64
	SystemTime      time.Duration
	MemorySize      int64
	ResidentSize    int64
	MaxResidentSize int64
	IntResidentSize int64
	Swaps           int64
	Heap            int64 // bytes that the program has allocated and not freed
	NonHeap         int64 // resident memory that is not anonymous

	Usage
}

// ThreadFields selects components of thread_get_info (OMIS 8.1.3).
type ThreadFields uint32

const (
	ThreadProcess ThreadFields = 1 << iota
	ThreadGlobalID
	ThreadRootFunct
	ThreadParent
	ThreadMessageQueue
	ThreadStackSize
	ThreadNode
	ThreadLocalID
	ThreadSchedulingState
	ThreadTotalTime
	ThreadPriority
	ThreadSystemTime

	// ThreadName is bit 16, which OMIS does not define: Linux threads have names, and a
	// MIR snapshot shows them.
	ThreadName ThreadFields = 1 << 16
)

// OMIS does not define the following components either: metrics of MIR need them.
const (
	ThreadUserTime ThreadFields = ThreadName << (1 + iota)
	ThreadQueuedTime
	ThreadMinorPageFaults
	ThreadMajorPageFaults
	ThreadVolContSwitch
	ThreadInvolContSwitch
	ThreadReadBytes
	ThreadWrittenBytes
	ThreadFileInput
	ThreadFileOutput

	LastThreadField = ThreadFileOutput
)

// ThreadInfo holds the selected components; the others are zero.
type ThreadInfo struct {
	RootFunction uint64
	Parent       int // tid; 0 if it cannot be known
	StackSize    int64
	State        int
	TotalTime    time.Duration
	Priority     int64
	SystemTime   time.Duration
	Name         string

	Usage
}

// Usage holds the components that processes and threads have in common. QueuedTime is the
// time for which threads were ready and waited for a processor. ReadBytes are the results of
// read and similar calls, whatever they read from; FileInput is what disks had to read for
// them, in blocks of 512 bytes. QueuedTime and the context switches of a process are those
// of its live threads.
type Usage struct {
	UserTime, QueuedTime               time.Duration
	MinorFaults, MajorFaults           int64
	VoluntarySwitches, InvoluntaryOnes int64
	ReadBytes, WrittenBytes            int64
	FileInput, FileOutput              int64
}

// Frame is one function activation in a backtrace.
type Frame struct {
	PC uint64 // address being executed, or return address
	FP uint64 // canonical frame address
}

// Backtrace is the stack of one thread, innermost frame first, or the reason why it could
// not be read.
type Backtrace struct {
	Frames []Frame
	Err    error
}

// Module is a load module of a process (OMIS proc_get_loader_info). The main module comes
// first in a list. Bias is the difference between addresses in the process and in the
// file.
type Module struct {
	Path               string
	Bias               uint64
	CodeStart, CodeLen uint64
	DataStart, DataLen uint64
	BSSStart, BSSLen   uint64
}
