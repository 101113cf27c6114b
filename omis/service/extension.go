package service

import (
	"context"

	"mirador/omis"
)

// Extension adds services and classes of objects under a prefix of its own
// (OMIS 6.2): every service is called PREFIX_…, every class PREFIX_x. The engine
// reads all of it once, when it starts.
type Extension interface {
	Prefix() string
	Services() []Service
	Classes() []Class
	// Actions are the implementations of the manipulation and information
	// services, Sources those of the event services, by name.
	Actions() map[string]Action
	Sources() map[string]Source
}

// Detector is an extension some of whose event services are detected by nodes, as those of
// chapter 8 are.
type Detector interface {
	Extension
	// Kinds are the events by the names of their services.
	Kinds() map[string]omis.EventKind
}

// Class is a class of tokens that an extension adds, with its place in the
// hierarchy of objects (OMIS 7.2.2). A class without conversions stands apart,
// like conditional requests do.
type Class struct {
	Class omis.Class
	// Parent localises: the token of the object of another class that contains
	// the object.
	Parent func(object any) omis.Token
	// Contained expands: the tokens of the objects it contains.
	Contained func(object any) []omis.Token
}

// Converts tells whether tokens of the class may stand for objects of others.
func (c *Class) Converts() bool { return c.Parent != nil || c.Contained != nil }

// Action executes a manipulation or information service on one object. One that
// the table calls Local may be called on the goroutine that owns a process, while
// the thread is held: it must not block, must not use Call.Scope, and must not
// keep the Call or what it points to. That of an information service may be called for
// several objects at a time.
//
// An error that is no *omis.Error is reported with OMIS_UNSPECIFIED_ERROR.
type Action func(*Call) ([]omis.Value, error)

// Compiler is an extension some of whose Local actions are steps of programs
// (omis.Program), so that they can run where events happen.
type Compiler interface {
	Extension
	// Compilers are by the names of the actions. The objects of these are Cells.
	Compilers() map[string]Compile
}

// Compile says what an action does to each of its objects. An error says why only
// the Action itself can do it.
type Compile func(args []Argument) (omis.Op, error)

// Argument is one of an action that is to be a step of a program: a value or, where it is an
// event context parameter, how programs load it.
type Argument struct {
	omis.Value
	Load omis.Load
}

// Arguments are those of an action that takes none from the event.
func Arguments(values []omis.Value) []Argument {
	list := make([]Argument, len(values))
	for i, v := range values {
		list[i].Value = v
	}
	return list
}

// Collector is an extension that reads many objects together for much less than one
// after the other.
type Collector interface {
	Extension
	// Collectors are by the names of actions of information services, and answer as these
	// do.
	Collectors() map[string]Collect
}

// Collect executes an action on many objects, as many as count tells; Call is as it is for
// each of them, but for the object. It answers for all of them in their order, for those that follow each
// other and have the same answer at once.
type Collect func(c *Call, count int, object func(i int) any, answer func(n int, values []omis.Value, err error))

// Cell is an object that programs change. They do it in stores, one for each process,
// whose rows are the cell's own for whoever reads it. Its methods may be called from
// any goroutine.
type Cell interface {
	Kind() omis.StoreKind
	// Join adds the rows of a store to the cell's, as they will be.
	Join(Store)
	// Leave takes over the rows of a store for good; it is about to be closed.
	Leave(Store) error
}

// Breaker is a Cell whose intervals the monitor opens and closes, too.
type Breaker interface {
	// BreakOff counts the intervals as unfinished that the monitor has opened in a process:
	// they end in another placement, which cannot know them.
	BreakOff(proc omis.Token)
}

// Clocked is a Cell that says by which clock it wants to be measured.
type Clocked interface {
	Cell
	Clock() omis.Clock
}

// Sampled is a Cell that wants only some of its intervals to be timed.
type Sampled interface {
	Cell
	OneIn() int64 // see omis.Op
}

// Traced is a Cell whose stores are Trails.
type Traced interface {
	Cell
	Room() int64 // see omis.Op
}

// Folder is an object with rows of threads in the monitor's memory.
type Folder interface {
	// Fold adds up the rows of threads that have ended, but for those that came last
	// (omis.RowsOfEnded).
	Fold(Ended)
}

// Ended tells whose rows are to be added up: those of threads of a process that do not live
// any more. What they have measured together is nobody's.
type Ended struct {
	Proc, Nobody omis.Token
	Lives        func(thread omis.Token) bool
}

// Store holds rows of a cell for one process: see omis.Store.
type Store interface {
	Rows() ([]Row, error)
	Reset() error
}

// Trail is a Store of a Traced cell: see omis.Trail.
type Trail interface {
	Store
	Take() (records []Record, lost uint64, err error)
}

// Record is a record of a trail, and whose it is.
type Record struct {
	Proc, Thread omis.Token
	omis.Record
}

// HistogramStore is a Store of omis.StoreHistograms: see omis.HistogramStore.
type HistogramStore interface {
	Store
	Histograms() ([]Histogram, error)
}

// ManyReader is the capability of a Store to read many of its kind with one look.
type ManyReader interface {
	Store
	// ReadMany hands over the rows of each store, in their order. They are lent until
	// each returns.
	ReadMany(list []Store, each func(i int, rows []Row, err error))
}

// Row is a row of a store, and whose it is.
type Row struct {
	Proc, Thread omis.Token
	omis.Row
}

// Histogram is a row of a store with its distribution.
type Histogram struct {
	Row
	Buckets omis.Distribution
}

// Call is one execution of an action on one object.
type Call struct {
	Token  omis.Token   // of the object; "" for a service that works on none
	Object any          // what Scope.Add was given, for objects of the extension's classes
	Args   []omis.Value // event context parameters replaced by their values

	// Event is the occurrence that triggered the action; nil in an unconditional
	// request.
	Event *Occurrence
	Scope Scope
}

// Occurrence is an event that happened, as actions see it. Where it cannot be
// attributed to a process or a thread, these are omis.Undefined.
type Occurrence struct {
	Node, Proc, Thread omis.Token
	Time               int64 // the node's monotonic nanoseconds
	// Before and After are what the cost of the occurrence was until Time, and will be
	// from the end of the list on, as far as that was measured; in nanoseconds.
	Before, After int64
	At            omis.StackPlace // where on a stack the event happened
	Held          string          // how the thread is held: omis.Hit.Held
	Params        []omis.Value
	Now           func() int64 // the clock that Time was read from
	// CPU is how much CPU time the thread has used, in nanoseconds; nil where there is
	// nobody to ask. The error says why it cannot be told.
	CPU func() (int64, error)
}

// Scope is the tool on whose behalf an action runs. Its methods may be called
// from any goroutine but not from a Local action.
type Scope interface {
	// Add makes a token for an object of one of the extension's classes; it is
	// visible to this tool alone. Remove makes the token unknown.
	Add(c omis.Class, object any) omis.Token
	Remove(omis.Token)
	// Changed tells that what an object contains is another now: requests whose
	// event names its token are adapted.
	Changed(omis.Token)
	// Now reads the clock that times of events are by, for what happens outside of one.
	Now() int64
	// Request uses other services, as the tool would.
	Request(ctx context.Context, request string) (omis.Reply, error)
}

// Source detects the events of an extension's event service: it calls raise for
// each occurrence, from any goroutine, until cancel was called. raise returns
// when the action lists are done; it must not be called before Source has returned.
// cancel may be called out of raise, so it must not wait for it. Fields of the occurrence that are zero are filled in by the
// engine.
type Source func(args []omis.Value, scope Scope, raise func(Occurrence)) (cancel func(), err error)

// Place is the object where the event occurred, for an event service that works on
// objects of a class.
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
			return o.Params[0].Token() // message_queue_has_been_extended names it
		}
	}
	return omis.Undefined
}
