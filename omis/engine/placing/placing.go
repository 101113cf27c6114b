package placing

import (
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"mirador/omis"
	"mirador/omis/node"
	"mirador/omis/program"
	"mirador/omis/service"
)

// Placing places the programs of all requests of an engine.
type Placing struct {
	lock sync.Locker // the engine's lock for instrumentation, which guards all fields
	host Host
	log  *slog.Logger

	kept      map[service.Cell]*keeping
	journal   Journal                    // nil: nothing is recorded
	losses    map[string]time.Time       // by key, when values that former monitors had in memory were lost
	hits      map[service.Cell]*hitCount // by the cell whose programs they count
	settled   bool                       // Settle was called
	guarded   map[service.Cell]bool      // named by locked lists
	clearing  bool                       // a timer will remove programs that rest
	relieved  []*Subscription            // whose placement will be chosen again
	lingering []*inPlace                 // removed programs that threads may still run

	room  sync.Pool // of lists of rows, which are read often
	rooms sync.Pool // of manyRows
}

// Host is the engine that the requests belong to.
type Host interface {
	// Tools returns the tools of the engine.
	Tools() []Tool
	// TIDs returns the numbers of threads; nil for nil.
	TIDs(threads map[omis.Token]bool) []int
	// Execute makes the monitor execute a request in a process from now on. note is added to the placement.
	Execute(*Subscription) (held Held, note string, err error)
	// Attached returns the processes that a tool is attached to.
	Attached() []*Process
}

// Tool is a tool of the engine. Equal values are the same tool.
type Tool interface {
	// Requests returns the conditional requests of the tool.
	Requests() []*Request
	// Processes returns the processes in the tool's scope.
	Processes() []*Process
	// Has reports whether a cell is an object of the tool.
	Has(service.Cell) bool
}

// Held is the execution of a request by the monitor in a process, with the thread held.
type Held interface {
	// Hits yields how often the request was executed for each way of holding the thread, and the
	// request's part of these holds, which several requests may share.
	Hits() iter.Seq2[string, Hits]
	// End ends the execution.
	End()
}

// Hits is a number of executions, and the part of the holds that they bear.
type Hits struct {
	Count uint64
	Parts float64
}

// Journal records for the next monitor what the memory of this one has.
type Journal interface {
	// InMemory records that values kept under the key are in the memory of this
	// monitor, so that they end with it.
	InMemory(key string)
	// Unkept erases what is recorded of the key: its object does not exist any more.
	Unkept(key string)
}

// Request is a conditional request, as far as its placement is concerned.
type Request struct {
	Owner    Owner
	Tool     Tool
	Token    omis.Token
	Num      int            // requests are served in this order
	Watch    node.Watch     // the event; without Event, it occurs in no process
	Base     omis.Placement // if the monitor executes it
	Times    bool           // it opens or closes intervals
	Imagined bool           // it is only explained: its objects need not exist

	Subs map[*Process]*Subscription // where it is executed

	resting  map[*Process]*Subscription // programs that are placed while the request is disabled
	observed map[*Process]float64       // where it ever was executed, and the CPU time of the process before that
	spent    omis.Spending              // where it is not executed any more
	missed   atomic.Int64               // see Missed, in Unix nanoseconds; 0: never
}

// Missed returns when the request last may have missed events, because it took too long to move to another
// placement. The zero time means never.
func (c *Request) Missed() (t time.Time) {
	if ns := c.missed.Load(); ns != 0 {
		t = time.Unix(0, ns)
	}
	return t
}

// Owner is the engine's side of a request.
type Owner interface {
	// Compile makes a program of the action list for a process, or says why that is impossible.
	Compile(*Process) ([]Step, error)
	// Intervals returns the cells in which the request opens or closes intervals, or records where on the stack
	// executions begin or end.
	Intervals() []service.Cell
	// Changes yields the cells that the request changes.
	Changes() iter.Seq[service.Cell]
	// WantsReplies reports whether the tool wants a reply for each execution.
	WantsReplies() bool
	// Hides reports whether the tool has detached from a thread of a process.
	Hides(*Process) bool
	// Enabled reports whether the request is enabled.
	Enabled() bool
	// Targets returns the processes that the event is defined for.
	Targets() []Target
	// Remark returns what to add to the placement, if the monitor would execute the request in a process.
	Remark(*Process) string
	// Disabled reports to the tool that the request is not executed in a process any more.
	Disabled(*Process, error)
}

// Step is an operation of a program, with the cell that it changes. In a request that is only explained, the
// cell may be nil.
type Step struct {
	Op     program.Op
	Cell   service.Cell
	Source service.Cell // that program.ClockCell reads; nil for other clocks
}

// Target is a process that an event is defined for, with the threads or queues that it is limited to.
type Target struct {
	Proc *Process
	Only map[omis.Token]bool // nil: all, including those to come
}

// Wanted is a request that is to be executed in a process from now on.
type Wanted struct {
	Request *Request
	Target
}

// Subscription is a request's execution in a process: by a program in a placement, or by the monitor.
type Subscription struct {
	Request *Request
	Target

	held       Held     // not nil: the monitor executes the request
	placed     *inPlace // not nil: a program does
	restsSince time.Time
	refused    []obstacle // why it does not run where it is cheaper
	placement  omis.Placement
}

// Placement returns where the request is executed.
func (s *Subscription) Placement() omis.Placement { return s.placement }

// New makes the Placing of an engine. lock is the engine's lock for instrumentation.
func New(host Host, lock sync.Locker, log *slog.Logger) *Placing {
	x := &Placing{
		host: host, lock: lock, log: log, kept: make(map[service.Cell]*keeping),
		hits: make(map[service.Cell]*hitCount), guarded: make(map[service.Cell]bool),
	}
	x.room.New = func() any { return new([]program.Row) }
	x.rooms.New = func() any { return new(manyRows) }
	return x
}

// SetJournal sets the journal. It is called before any object is kept.
func (x *Placing) SetJournal(j Journal) { x.journal = j }

// Close releases what removed programs still need.
func (x *Placing) Close() {
	for _, in := range x.lingering {
		in.release()
	}
	x.lingering = nil
}
