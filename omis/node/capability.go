package node

import (
	"fmt"
	"time"

	"mirador/omis"
)

// Capabilities are what a Node can do beyond the interface Node. A nil field means that it
// cannot. All methods follow the concurrency and error rules of Node.
type Capabilities struct {
	Registers      Registers
	CallNames      CallNames
	MemoryWriter   MemoryWriter
	Suspender      Suspender
	ThreadControl  ThreadControl
	ThreadCrowd    ThreadCrowd
	ProcCrowd      ProcCrowd
	CPUTimer       CPUTimer
	NodeInformer   NodeInformer
	Checkpointer   Checkpointer
	MessagePassing MessagePassing
	Detector       Detector
	Equipment      Equipment
	Neighbours     Neighbours
	Meters         Meters

	GoroutineLister GoroutineLister
	StartFinder     StartFinder
}

// Registers reads and writes the registers of threads (OMIS 8.1.3). The node stops a
// running thread for this and continues it. Integer registers have the numbers of the
// processor's DWARF ABI (x86-64: 0 rax, 1 rdx, 2 rcx, 3 rbx, 4 rsi, 5 rdi, 6 rbp, 7 rsp,
// 8-15 r8-r15, 16 rip), followed by 17 eflags, 18 fs_base, 19 gs_base; floating point
// registers 0-15 are the low doubles of xmm0-xmm15, 16-23 st0-st7. A write that fails
// changes nothing.
type Registers interface {
	// RegisterCounts returns the number of registers of each kind that a thread has.
	RegisterCounts() (integer, floating int)
	ReadIntRegs(p omis.ProcID, tid, first, n int) ([]uint64, error)
	WriteIntRegs(p omis.ProcID, tid, first int, values []uint64) error
	ReadFPRegs(p omis.ProcID, tid, first, n int) ([]float64, error)
	WriteFPRegs(p omis.ProcID, tid, first int, values []float64) error
	// Goto sets the program counter; the thread abandons a system call in progress. Call
	// also pushes the old program counter. If the thread was in a system call, it gets
	// its registers back when the function returns, and repeats the call.
	Goto(p omis.ProcID, tid int, addr uint64) error
	Call(p omis.ProcID, tid int, addr uint64) error
}

// CallNames knows the names of system calls.
type CallNames interface {
	// CheckCall returns an error if no system call has this name; "" means all calls.
	CheckCall(name string) error
}

// MemoryWriter writes into the memory of processes.
type MemoryWriter interface {
	// WriteMemory writes all of data or nothing. At the address of a breakpoint it
	// changes the program's byte that the breakpoint displaced.
	WriteMemory(p omis.ProcID, addr uint64, data []byte) error
}

// Suspender suspends and resumes threads, independently of Stop and Continue. It counts:
// a thread suspended twice must be resumed twice. An empty list means all threads of the
// process, including those created later. A call that fails has suspended or resumed no
// thread. Resuming a thread that is not suspended is an error.
type Suspender interface {
	Suspend(p omis.ProcID, tids []int) error
	Resume(p omis.ProcID, tids []int) error
}

// ThreadControl acts on single threads, or sets the priority of a process.
type ThreadControl interface {
	SignalThread(p omis.ProcID, tid, sig int) error
	SetThreadPriority(p omis.ProcID, tid int, nice int) error
	SetPriority(p omis.ProcID, nice int) error
	// LetGo stops observing a thread for good (thread_detach).
	LetGo(p omis.ProcID, tid int) error
}

// ThreadCrowd reads information about many threads of a process at once, where that is
// cheaper than one by one.
type ThreadCrowd interface {
	// ThreadInfos returns ThreadInfo by thread number. The map may contain other threads,
	// and may lack any of those asked for: call ThreadInfo for them, or for the reason.
	ThreadInfos(p omis.ProcID, tids []int, f ThreadFields) map[int]ThreadInfo
}

// ProcCrowd reads information about many processes at once, where that is cheaper than
// one by one.
type ProcCrowd interface {
	// ProcInfos returns ProcInfo of the processes, in the order of the list. Any element
	// may be nil, and the whole result may be nil: call ProcInfo for those processes.
	ProcInfos(list []omis.ProcID, f ProcFields) []*ProcInfo
}

// CPUTimer returns the CPU time of held threads.
type CPUTimer interface {
	// CPUTime returns the processor time that a thread has used since it began, in
	// nanoseconds. A handler of Watch may call it. It waits until the thread has left its
	// processor.
	CPUTime(p omis.ProcID, tid int) (int64, error)
}

// Meters counts events in threads that neither clocks nor counters of programs show: events of
// the processor, such as instructions and misses of caches, and events that only the kernel knows.
type Meters interface {
	// CheckMeter returns the reason why this machine cannot count an event, nil if it can.
	CheckMeter(event string) error
	// OpenMeter counts an event from now on, in a thread and in the threads that it creates
	// from now on. A handler of Watch may call it.
	OpenMeter(p omis.ProcID, tid int, event MeterEvent) (Meter, error)
}

// MeterEvent is what a Meter counts.
type MeterEvent struct {
	Name string
	// Alone counts in the thread alone, not in those that it creates, and without taking turns with
	// other events: reading fails if the processor has no counter left.
	Alone bool
}

// Meter counts an event. It must be closed. Its methods must not be called concurrently.
type Meter interface {
	Read() (MeterReading, error)
	Close() error
}

// MeterReading is what a Meter has counted so far. If there are fewer counters than events to
// count, the kernel counts each event for a part of the time: the event was Enabled for longer
// than it was Running.
type MeterReading struct {
	Count            uint64
	Enabled, Running time.Duration
}

// NodeInformer answers node_get_info (OMIS 8.1.1): the components of the groups whose
// bits are set in flags (0 to 13, and 14 for what OMIS does not define), in the order of the specification. A component that
// Linux does not have is -1 or "". Rates are averages over 1 to 15 seconds.
type NodeInformer interface {
	NodeInfo(flags uint32) ([]omis.Value, error)
}

// Checkpointer saves and restores processes.
type Checkpointer interface {
	// Checkpoint saves processes and their descendants under a name, and replaces an
	// existing checkpoint of that name. It saves each process tree at one moment; the
	// processes then continue.
	Checkpoint(ps []omis.ProcID, name string) error
	// Restore brings back all processes of a checkpoint with their former pids. They are
	// stopped like launched processes; Continue starts them. If it fails, no restored
	// process is left; the error is *Occupied if a pid is in use.
	Restore(name string) ([]omis.ProcID, error)
	// Descendants returns the pids of the processes that Checkpoint saves along with p.
	Descendants(p omis.ProcID) ([]int, error)
	// Discard removes a checkpoint.
	Discard(name string) error
}

// Occupied reports that a process cannot be restored because another process or thread
// has its pid.
type Occupied struct {
	PID int
	Who string
}

func (o *Occupied) Error() string {
	return fmt.Sprintf("cannot restore process %d: %s", o.PID, o.Who)
}

// Unwrap returns the *Error with the status for the reply.
func (o *Occupied) Unwrap() error { return &omis.Error{Status: omis.OSError, Msg: o.Error()} }

// Detector reports which kinds of event a node can detect, so that the engine refuses
// other requests, with the reason, when they are defined. If a node does not implement
// Detector, Watch returns the error when a request is enabled.
type Detector interface {
	// CanDetect returns the reason why the node cannot detect a kind of event, nil if it
	// can.
	CanDetect(EventKind) error
}

// Equipment reports what the machine of a node lacks, such as CRIU or a description of the
// kernel's types. The engine asks before it lists a service or accepts a request for it. If a
// node does not implement Equipment, its machine lacks nothing.
type Equipment interface {
	// LacksForEvent returns the reason why this machine cannot detect a kind of event that
	// CanDetect allows, nil if it can.
	LacksForEvent(EventKind) error
	// LacksForCheckpoint returns the reason why this machine cannot save and restore
	// processes, nil if it can. The first call may take a second.
	LacksForCheckpoint() error
}

// Kinds of event that only some nodes can detect.
const (
	EventSignal          EventKind = iota + 16 // thread_received_signal; Watch.Signals, Hit.Signal
	EventSysCallStarted                        // thread_has_started_sys_call; Watch.Name ("" all), Hit.Params
	EventSysCallEnded                          // thread_has_ended_sys_call; Hit.Params[0] is the result
	EventLibCallStarted                        // thread_has_started_lib_call; Watch.Name, Hit.Params
	EventLibCallEnded                          // thread_has_ended_lib_call; Hit.Params[0] is the result
	EventStepped                               // thread_executed_insn; Hit.Addr
	EventSteppedOver                           // thread_executed_insn_call
	EventScheduled                             // thread_has_been_scheduled
	EventDescheduled                           // thread_has_been_descheduled
	EventBlocked                               // thread_has_blocked
	EventUnblocked                             // thread_has_been_unblocked
	EventThreadStopped                         // thread_has_been_stopped
	EventThreadContinued                       // thread_has_been_continued
	EventNodeAdded                             // thread_adds_node; Hit.Peer
	EventNodeRemoved                           // thread_removes_node; Hit.Peer
	EventQueueExtended                         // message_queue_has_been_extended; Hit.Queue, Hit.Message
	EventTaggedMessage                         // thread_has_received_tagged_msg; Watch.Signals are the tags, Hit.Message
	EventBlockedOnIO                           // pa_thread_has_blocked_on_io
)
