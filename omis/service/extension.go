package service

import (
	"context"

	"mirador/omis"
	"mirador/omis/node"
	"mirador/omis/program"
)

// Extension adds services and classes of objects under a prefix of its own (OMIS 6.2): its
// services are named PREFIX_…, its classes PREFIX_x. The engine calls all methods once, when
// it starts.
type Extension interface {
	Prefix() string
	// Services returns the table with the implementation of each service in its row.
	Services() []Service
	Classes() []Class
}

// Provider is an extension that adds capabilities to nodes. A message-passing platform that an
// extension knows provides node.MessagePassing.
type Provider interface {
	Extension
	// Provide sets the capabilities that the extension adds to a node. The engine calls it
	// when the node joins.
	Provide(n node.Node, c *program.Capabilities)
}

// Class is a class of tokens that an extension adds, with its position in the hierarchy of
// objects (OMIS 7.2.2). A class without conversions is outside the hierarchy, like conditional
// requests.
type Class struct {
	Class omis.Class
	// Parent returns the token of the object of another class that contains the object
	// (localisation).
	Parent func(object any) omis.Token
	// Contained returns the tokens of the objects that the object contains (expansion).
	Contained func(object any) []omis.Token
}

// Converts reports whether tokens of the class can be converted to objects of other classes.
func (c *Class) Converts() bool { return c.Parent != nil || c.Contained != nil }

// Action executes a manipulation or information service on one object. The engine may call a
// Local action on the owner goroutine of a process, while the thread is held. Such an action
// must not block, must not use Call.Scope, and must not keep the Call or data that it refers
// to. The action of an information service may be called for several objects concurrently.
//
// An error that is not an *omis.Error is reported as OMIS_UNSPECIFIED_ERROR.
type Action func(*Call) ([]omis.Value, error)

// Compile returns the operation of a Local action on each of its objects, which are Cells, so
// that the action can run as a step of programs (program.Program) where events happen. The error
// tells why only the Action itself can execute it.
type Compile func(args []Argument) (program.Op, error)

// Argument is an argument of an action to compile: a value or, for an event context parameter,
// how programs load it.
type Argument struct {
	omis.Value
	Load program.Load
}

// Arguments converts the arguments of an action that uses no event context parameters.
func Arguments(values []omis.Value) []Argument {
	list := make([]Argument, len(values))
	for i, v := range values {
		list[i].Value = v
	}
	return list
}

// Collect executes an information service on count objects, at a much lower cost than one by
// one. Call is the same for all objects, except for Object. Collect calls answer for the objects
// in their order; one call covers n consecutive objects with the same result.
type Collect func(c *Call, count int, object func(i int) any, answer func(n int, values []omis.Value, err error))

// Cell is an object that programs change. Programs change it in stores, one for each process,
// whose rows readers see as the cell's own. Its methods may be called by any goroutine.
type Cell interface {
	Kind() program.StoreKind
	// Join adds a store. Its current and future rows belong to the cell.
	Join(Store)
	// Leave copies the rows of a store that is about to be closed.
	Leave(Store) error
}

// Breaker is a Cell with intervals that the monitor can also open and close.
type Breaker interface {
	// BreakOff counts the intervals that the monitor has opened in a process as unfinished.
	// They end in another placement, which does not know them.
	BreakOff(proc omis.Token)
}

// Clocked is a Cell that selects the clock for its times.
type Clocked interface {
	Cell
	Clock() program.Clock
	// Source returns the cell that program.ClockCell reads; nil for other clocks.
	Source() Cell
}

// Sourced is a Cell that may be the source of others.
type Sourced interface {
	Cell
	// IsSource reports whether it is the source of a cell.
	IsSource() bool
}

// Sampled is a Cell that times only some of its intervals.
type Sampled interface {
	Cell
	OneIn() int64 // see program.Op
}

// Traced is a Cell whose stores are Trails.
type Traced interface {
	Cell
	Room() int64 // see program.Op
}

// Folder is an object with rows of threads in the monitor's memory.
type Folder interface {
	// Fold adds up the rows of threads that have ended, except for the most recent ones
	// (program.RowsOfEnded).
	Fold(Ended)
}

// Ended selects the rows to add up: the rows of the ended threads of Proc. Their sum belongs
// to the thread token Nobody.
type Ended struct {
	Proc, Nobody omis.Token
	Lives        func(thread omis.Token) bool
}

// Store holds the rows of a cell for one process; see program.Store.
type Store interface {
	Rows() ([]Row, error)
	Reset() error
}

// RawReader is a Store that returns its rows as programs see them, without the corrections
// that Rows makes. It is only for stores of placements that are a program.SourceReader, and
// does not wait.
type RawReader interface {
	Store
	RawRows() ([]Row, error)
}

// Wide is a Cell in which an event can measure other threads than its own. Then only the
// monitor executes the requests that change the cell.
type Wide interface {
	Cell
	IsWide() bool
}

// Trail is a Store of a Traced cell; see program.Trail.
type Trail interface {
	Store
	Take() (records []Record, lost uint64, err error)
}

// Record is a record of a trail, with its process and thread.
type Record struct {
	Proc, Thread omis.Token
	program.Record
}

// HistogramStore is a Store of program.StoreHistograms; see program.HistogramStore.
type HistogramStore interface {
	Store
	Histograms() ([]Histogram, error)
}

// ManyReader is a Store that can read many stores of its kind in one pass.
type ManyReader interface {
	Store
	// ReadMany passes the rows of each store to each, in the order of list. The rows are valid
	// until each returns.
	ReadMany(list []Store, each func(i int, rows []Row, err error))
}

// Row is a row of a store, with its process and thread.
type Row struct {
	Proc, Thread omis.Token
	program.Row
}

// Histogram is a row of a store with its distribution.
type Histogram struct {
	Row
	Buckets program.Distribution
}

// Call is the execution of an action on one object.
type Call struct {
	Token  omis.Token   // of the object; "" for a service without objects
	Object any          // the argument of Scope.Add, for objects of the extension's classes
	Args   []omis.Value // with the values of event context parameters

	// Event is the occurrence that triggered the action; nil in an unconditional request.
	Event *Occurrence
	Scope Scope
}

// Occurrence is an event that happened. Proc and Thread are omis.Undefined if the event cannot
// be attributed to a process or a thread.
type Occurrence struct {
	Node, Proc, Thread omis.Token
	Time               int64 // nanoseconds of the node's monotonic clock
	// Before and After are the measured costs of the occurrence in nanoseconds: before Time,
	// and after the end of the action list.
	Before, After int64
	At            node.StackPlace // the stack position at which the event happened
	Held          string          // how the thread is held: node.Hit.Held
	Params        []omis.Value
	Now           func() int64 // reads the clock of Time
	// CPU returns the CPU time that the thread has used, in nanoseconds, or an error with the
	// reason if it is unknown. It is nil if there is no thread.
	CPU func() (int64, error)
	// Info returns components of proc_get_info for the process. A Local action may call it. It is nil
	// if there is no process.
	Info func(node.ProcFields) (node.ProcInfo, error)
	// Meter counts an event in a thread alone from now on (node.Meters). A Local action may call it, and
	// ThreadInfo, which returns components of thread_get_info for a thread, with its process.
	Meter      func(thread omis.Token, event string) (node.Meter, error)
	ThreadInfo func(thread omis.Token, f node.ThreadFields) (proc omis.Token, info node.ThreadInfo, err error)
	// Threads returns the live threads of a process. A Local action may call it.
	Threads func(proc omis.Token) []omis.Token
	// Measured is what the latest action of the list has measured, Measures whether it
	// measured anything. Actions set them for the action after them.
	Measured int64
	Measures bool
	// Group is what the latest action of the list has measured for a group of threads.
	Group []OfThread
}

// OfThread is what an action has measured for a thread of a group.
type OfThread struct {
	Proc, Thread omis.Token
	Value        int64
}

// Scope is the tool for which an action runs. Its methods may be called by any goroutine, but
// not from a Local action.
type Scope interface {
	// Add creates a token for an object of one of the extension's classes. Only this tool
	// knows the token. Remove deletes the token.
	Add(c omis.Class, object any) omis.Token
	Remove(omis.Token)
	// Changed reports that an object contains other objects now. The engine then adapts
	// requests whose event names its token.
	Changed(omis.Token)
	// Now reads the clock of event times, for actions without an event.
	Now() int64
	// Request executes a request as if the tool had sent it, and returns its first reply. The
	// later replies of a conditional request go to later, one call at a time and in order; nil
	// discards them.
	Request(ctx context.Context, request string, later func(omis.Reply)) (omis.Reply, error)
	// Machine returns the machine of a node, process, thread, queue or message. It fails if
	// there is no such object.
	Machine(object omis.Token) (program.Machine, error)
	// Threads returns the threads that a list of tokens stands for (OMIS 7.2.2); an empty list
	// stands for all threads of the scope.
	Threads(objects []omis.Value) ([]Thread, error)
}

// Thread is a thread on its machine.
type Thread struct {
	Token, Proc omis.Token
	Machine     program.Machine
	ID          omis.ProcID
	TID         int
}

// Source detects the events of an extension's event service. It calls raise for each
// occurrence, from any goroutine, until cancel is called. raise returns after the action
// lists; it must not be called before Source has returned. raise may call cancel, so cancel
// must not wait for raise. The engine sets fields of the occurrence that are zero.
type Source func(args []omis.Value, scope Scope, raise func(Occurrence)) (cancel func(), err error)

// Place returns the object of a class at which the event occurred.
func (o *Occurrence) Place(c omis.Class) omis.Token {
	switch c {
	case omis.ClassNode:
		return o.Node
	case omis.ClassProcess:
		return o.Proc
	case omis.ClassThread:
		return o.Thread
	case omis.ClassQueue:
		if len(o.Params) > 0 && o.Params[0].Token().Class() == c {
			return o.Params[0].Token() // message_queue_has_been_extended names the queue
		}
	}
	return omis.Undefined
}
