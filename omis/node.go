package omis

import "context"

// ProcID names a process of a node for its whole life: a pid may be used again,
// a pid with its start time may not.
type ProcID struct {
	PID   int
	Start uint64 // field 22 of /proc/PID/stat, in clock ticks since boot
}

// Node is the monitor/program interface of one machine (OMIS 4): what the
// engine asks of the node its objects live on. Linux is one implementation, the
// scripted fake of the engine's tests another.
//
// All methods may be called from any goroutine at any time; they return when
// the effect is complete (OMIS 7.2.3: services have no delayed side effects).
// Errors that a person should read are *Error, with the status of the reply.
// No method leaves a process traced unless a watch, a stop or a suspension
// stands on it: information is read from /proc, and where a thread must be
// stopped for it, it goes on before the method returns.
type Node interface {
	// Name is the node's name, as node_attach2 takes it.
	Name() string

	// Identify finds a process by its pid and tells whether it may be observed.
	// It neither traces nor disturbs it. The error says who stands in the way:
	// another user's process, a tracer, a kernel thread, a zombie.
	Identify(pid int) (ProcID, error)

	// Launch starts a process and stops it before its first instruction;
	// Continue sets it going (OMIS proc_create).
	Launch(Launch) (ProcID, error)

	ProcInfo(ProcID, ProcFields) (ProcInfo, error)
	Threads(ProcID) ([]int, error)
	ThreadInfo(p ProcID, tid int, f ThreadFields) (ThreadInfo, error)
	Modules(ProcID) ([]Module, error)
	// Backtraces stops the given threads once, reads up to depth frames of each
	// (0: all) and lets them go on. The i-th result belongs to the i-th thread.
	Backtraces(p ProcID, tids []int, depth int) ([]Backtrace, error)
	ReadMemory(p ProcID, addr uint64, buf []byte) (int, error)
	Signal(p ProcID, sig int) error

	// Stop and Continue are idempotent (OMIS thread_stop, thread_continue). An
	// empty list of threads means all of them, those to come included.
	Stop(p ProcID, tids []int) error
	Continue(p ProcID, tids []int) error

	// Watch begins to look out for an event and calls handle for each
	// occurrence, one at a time for a process, on a goroutine that serves the
	// process: handle must be quick and must not call the node. Several watches on one place are called in
	// the order they were set; the instrumentation is planted once. cancel
	// takes the watch away; after it returned, handle is not called again, and
	// with the last watch on a place its bytes are what they were.
	Watch(w Watch, handle func(*Hit)) (cancel func() error, err error)

	// Now is the node's clock, the one the times of hits are read from:
	// monotonic nanoseconds.
	Now() int64

	// Close takes every watch away and lets everything go on.
	Close(context.Context) error
}

// Launch says how to start a process (OMIS proc_create).
type Launch struct {
	Path string
	Args []string // without the program's name
	Env  []string // nil: as the monitor's own
	IO   []string // files for stdin, stdout, stderr; "" or missing: /dev/null for stdin, the monitor's own else
	Dir  string   // "": the monitor's own
}

// EventKind is a kind of event that a node can detect.
type EventKind uint8

const (
	EventReachedAddr      EventKind = iota + 1 // thread_reached_addr
	EventProcTerminated                        // proc_has_terminated; needs no tracing
	EventThreadCreated                         // thread_creates_thread; Hit.Child is the new thread
	EventThreadTerminated                      // thread_has_terminated
	EventProcCreated                           // thread_creates_proc; Hit.Child is the new pid
)

// Watch says what to look out for.
type Watch struct {
	Event EventKind
	Proc  ProcID
	Addr  uint64 // EventReachedAddr

	Name    string // of a system call or library function
	Signals []int  // EventSignal; empty: all
	// Threads are the only ones whose occurrences matter; nil: all. A node may
	// call the handler for others too: it spares the node the single steps.
	Threads []int
}

// Hit is one occurrence of an event. It is valid until every holder released
// it; without a Hold, until the handler returns.
type Hit struct {
	Proc ProcID
	TID  int
	Addr uint64
	SP   uint64 // stack pointer, of an address reached; of a library call as it started, at its end too
	// Goroutine is the goroutine that reached the address, where the code is of Go.
	Goroutine Goroutine
	Args      Args  // of an address reached
	Time      int64 // monotonic nanoseconds, taken as the event was recognised
	Child     int   // new thread or process
	// ChildProc is the pid of a new thread's process where that is new too; 0: Proc.
	ChildProc int

	Signal int     // EventSignal
	Params []Value // of a system or library call
	Peer   string  // EventNodeAdded, EventNodeRemoved: the name of that node

	Queue   QueueID // EventQueueExtended
	Message Message // EventQueueExtended, EventTaggedMessage

	// Held says how the thread is held: HeldByPtrace, HeldByRendezvous; "" where
	// the node does not say, or nothing is held.
	Held string

	// Hold keeps the thread held after the handler returned, until the function
	// it returns was called (once, from any goroutine).
	Hold func() (release func())
	// Now is the node's clock, the one Time was read from.
	Now func() int64
}

// Goroutine is a goroutine of a program in Go, as the thread that runs it knows it. Zero: the
// code is not of Go, or the thread runs no goroutine.
type Goroutine struct {
	Addr     uint64 // of its descriptor (runtime.g), which stays as long as it lives
	StackEnd uint64 // the upper end of its stack, which the runtime may move
	// Unknown says why it is not known; nil: it is.
	Unknown error
}

// StackPlace is a place of a stack, by which the end of an interval finds its begin.
type StackPlace struct {
	// Goroutine is the address of the goroutine's descriptor; 0: the stack is the thread's.
	Goroutine uint64
	// SP is the stack pointer, 0 where the event has none; of a goroutine its distance from
	// the upper end of the stack, as a negative number: that stays when the stack is moved.
	SP uint64
	// Unknown says why it is not known whose stack it is.
	Unknown error
}

// Place returns the place of the stack where the event happened.
func (h *Hit) Place() StackPlace {
	g := h.Goroutine
	if g.Addr == 0 {
		return StackPlace{SP: h.SP, Unknown: g.Unknown}
	}
	return StackPlace{Goroutine: g.Addr, SP: h.SP - g.StackEnd}
}

// Args are the registers that have the first arguments of a function where it begins, if
// these are integers or addresses: rdi, rsi, rdx, rcx, r8, r9 on x86-64.
type Args [6]uint64

// Ways to hold a thread from the recognition of an event to the end of all
// action lists.
const (
	HeldByPtrace     = "ptrace"     // a ptrace stop
	HeldByRendezvous = "rendezvous" // it waits in shared memory
)

// ProcFields is the bit set of proc_get_info (OMIS 8.1.2): bit i asks for the
// i-th component.
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
)

// Scheduling states of proc_get_info and thread_get_info.
const (
	StateRunning = iota
	StateBlocked
	StateRunnable
	StateZombie
	StateStopped
)

// ProcInfo holds what was asked for; the rest is zero. Times are seconds, sizes
// bytes; -1 stands where Linux has no such thing.
type ProcInfo struct {
	Argv, Envp        []string
	UID, GID          int64
	Parent            int // pid
	State             int
	TotalTime         float64
	Priority          int64
	SystemTime        float64
	MemorySize        int64
	ResidentSize      int64
	MaxResidentSize   int64
	IntResidentSize   int64
	MinorFaults       int64
	MajorFaults       int64
	Swaps             int64
	FileInput         int64
	FileOutput        int64
	VoluntarySwitches int64
	InvoluntaryOnes   int64
}

// ThreadFields is the bit set of thread_get_info (OMIS 8.1.3).
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

	// ThreadName is bit 16, an addition of ours: Linux threads have names, and
	// a MIR snapshot wants them.
	ThreadName ThreadFields = 1 << 16
)

// ThreadInfo holds what was asked for; the rest is zero.
type ThreadInfo struct {
	RootFunction uint64
	Parent       int // tid; 0 where it cannot be known
	StackSize    int64
	State        int
	TotalTime    float64
	Priority     int64
	SystemTime   float64
	Name         string
}

// Frame is an element of a backtrace: the innermost first.
type Frame struct {
	PC uint64 // the address being executed, or returned to
	FP uint64 // the canonical frame address
}

// Backtrace is one thread's stack, or why it could not be read.
type Backtrace struct {
	Frames []Frame
	Err    error
}

// Module is a load module of a process (OMIS proc_get_loader_info). The main
// module is the first of the list. Bias is what to add to an address of the file
// to get an address of the process.
type Module struct {
	Path               string
	Bias               uint64
	CodeStart, CodeLen uint64
	DataStart, DataLen uint64
	BSSStart, BSSLen   uint64
}
