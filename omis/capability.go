package omis

import "fmt"

// What a node may be able to do beyond Node. The engine asks for a capability by
// a type assertion; where it is missing, the services that need it answer
// UNSUPPORTED_SERVICE and name it. All methods keep the promises of Node.

// Registers reads and writes the registers of threads (OMIS 8.1.3). A thread
// that runs is stopped for it and goes on afterwards. Integer registers are
// numbered as the DWARF ABI of the processor numbers them (x86-64: 0 rax, 1 rdx,
// 2 rcx, 3 rbx, 4 rsi, 5 rdi, 6 rbp, 7 rsp, 8-15 r8-r15, 16 rip), followed by 17
// eflags, 18 fs_base, 19 gs_base; floating point registers 0-15 are the low
// doubles of xmm0-xmm15, 16-23 st0-st7. A write that fails has changed nothing.
type Registers interface {
	// RegisterCounts is how many registers a thread has, of each kind.
	RegisterCounts() (integer, floating int)
	ReadIntRegs(p ProcID, tid, first, n int) ([]uint64, error)
	WriteIntRegs(p ProcID, tid, first int, values []uint64) error
	ReadFPRegs(p ProcID, tid, first, n int) ([]float64, error)
	WriteFPRegs(p ProcID, tid, first int, values []float64) error
	// Goto sets the program counter; a system call under way is given up. Call pushes
	// the old one first. A thread in a system call gets its registers back when the
	// function returns, and makes the call again.
	Goto(p ProcID, tid int, addr uint64) error
	Call(p ProcID, tid int, addr uint64) error
}

// CallNames knows the names of system calls.
type CallNames interface {
	// CheckCall refuses a name that no system call has; "" stands for all calls.
	CheckCall(name string) error
}

// MemoryWriter writes into processes.
type MemoryWriter interface {
	// WriteMemory writes all of data or nothing. Where a breakpoint stands, the
	// byte below it is written.
	WriteMemory(p ProcID, addr uint64, data []byte) error
}

// Suspender counts: a thread suspended twice must be resumed twice. An empty list
// means all threads of the process, those to come included. It is distinct from Stop
// and Continue. With an error, none of the threads has been suspended or resumed. To
// resume a thread that is not suspended is an error.
type Suspender interface {
	Suspend(p ProcID, tids []int) error
	Resume(p ProcID, tids []int) error
}

// ThreadControl is what can be done to single threads.
type ThreadControl interface {
	SignalThread(p ProcID, tid, sig int) error
	SetThreadPriority(p ProcID, tid int, nice int) error
	SetPriority(p ProcID, nice int) error
	// LetGo ends the observation of a thread for good (thread_detach).
	LetGo(p ProcID, tid int) error
}

// ThreadCrowd reads about many threads of a process at once, where that is cheaper.
type ThreadCrowd interface {
	// ThreadInfos is ThreadInfo of threads, by their numbers. There may be others among them, and any may be missing: ThreadInfo
	// tells of those, or why it cannot.
	ThreadInfos(p ProcID, tids []int, f ThreadFields) map[int]ThreadInfo
}

// ProcCrowd reads about many processes at once, where that is cheaper.
type ProcCrowd interface {
	// ProcInfos is ProcInfo of processes, in the order of the list. Any may be nil, or all of them missing: ProcInfo tells of
	// those, or why it cannot.
	ProcInfos(list []ProcID, f ProcFields) []*ProcInfo
}

// CPUTimer tells the CPU time of threads that are held.
type CPUTimer interface {
	// CPUTime is how long a thread has had processors since it began, in nanoseconds. It may
	// be asked while a handler of Watch runs; it waits until the thread rests.
	CPUTime(p ProcID, tid int) (int64, error)
}

// NodeInformer is node_get_info (OMIS 8.1.1): the components of the groups whose
// bits are set in flags (0 to 13), in the order of the specification; -1 or ""
// where Linux has no such thing. Rates are averaged over 1 to 15 seconds.
type NodeInformer interface {
	NodeInfo(flags uint32) ([]Value, error)
}

// Checkpointer saves and restores processes.
type Checkpointer interface {
	// Checkpoint saves processes, with their descendants, each tree of them as it
	// is at one moment; they go on as they were. A checkpoint of that name that
	// there was is replaced.
	Checkpoint(ps []ProcID, name string) error
	// Restore brings back all processes of a checkpoint, with the pids they had.
	// They are stopped, as launched ones are: Continue sets them going. With an
	// error none is left; it is *Occupied where a pid is not free.
	Restore(name string) ([]ProcID, error)
	// Descendants are the pids of those that Checkpoint would save with a process.
	Descendants(p ProcID) ([]int, error)
	// Discard removes a checkpoint.
	Discard(name string) error
}

// Occupied is why a process cannot be restored: its pid belongs to somebody.
type Occupied struct {
	PID int
	Who string
}

func (o *Occupied) Error() string {
	return fmt.Sprintf("cannot restore process %d: %s", o.PID, o.Who)
}

// Unwrap gives the status of the reply.
func (o *Occupied) Unwrap() error { return &Error{Status: OSError, Msg: o.Error()} }

// Detector tells which kinds of event a node can detect, so that requests for
// the others are refused as soon as they are defined, with the reason. Of a node
// that is no Detector this shows when they are enabled: Watch refuses.
type Detector interface {
	// CanDetect says why a kind of event cannot be detected; nil: it can.
	CanDetect(EventKind) error
}

// Further kinds of event.
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
