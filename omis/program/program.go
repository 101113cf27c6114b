package program

import (
	"slices"

	"mirador/omis"
	"mirador/omis/node"
)

// A local action list that only counts and measures time becomes a small program. The
// program runs where the event happens instead of a handler of Node.Watch. Its placement
// stores what it measures, and the engine reads the stores when a request asks for them.

// Operation is what one step of a program does.
type Operation uint8

const (
	OpAdd   Operation = iota + 1 // add the step's value to the thread's sum
	OpStart                      // open an interval of the thread
	OpStop                       // close the interval that was opened at the same place of the stack
	OpTrace                      // append a record with Op.Mark and the step's value to the thread's trace
	OpTake                       // measure the present value of the clock, as if an interval had begun when it was 0

	Operations = iota + 1 // the size of an array indexed by Operation
)

// Op is one step of a program.
type Op struct {
	Do    Operation
	Value int64 // OpAdd, OpTrace: the step's value, unless Load takes it from the event
	Load  Load  // OpAdd, OpTrace
	Mark  int32 // OpTrace
	Clock Clock // OpStart, OpStop, OpTake
	// Source is the store whose row of the thread ClockCell reads. It belongs to the same
	// placement and process as the program.
	Source Store
	// OneIn is the number of intervals that a thread begins for each one that is timed; 1
	// or less times all. It applies to OpStart, and to OpStop of the same store, which
	// ignores an occurrence for which no interval was opened.
	OneIn int64
	// Whole reports that an interval is the whole thread's, or goroutine's: it ends wherever on the stack, and
	// another one that begins replaces it; OpStart, OpStop.
	Whole bool
	// Histogram reports that the store has the kind StoreHistograms; OpStart, OpStop and OpTake.
	Histogram bool
	// Room is the number of newest records kept for a thread; OpTrace, constant for a
	// store.
	Room  int64
	Store Store // the store to change, of the process in which the program runs
}

// Times reports whether op opens, closes or measures intervals.
func (op Op) Times() bool { return op.Do == OpStart || op.Do == OpStop || op.Do == OpTake }

// Measures reports whether op measures an interval.
func (op Op) Measures() bool { return op.Do == OpStop || op.Do == OpTake }

// Program is a list of steps.
type Program []Op

// FillsHistogram reports whether p counts intervals in the buckets of a histogram.
func (p Program) FillsHistogram() bool {
	return slices.ContainsFunc(p, func(op Op) bool { return op.Measures() && op.Histogram })
}

// Tells reports whether the step after the i-th one records what that one measures.
func (p Program) Tells(i int) bool { return i+1 < len(p) && p[i+1].Load.From == FromStep }

// RecordsStack reports whether p records the stack pointer.
func (p Program) RecordsStack() bool {
	return slices.ContainsFunc(p, func(op Op) bool { return op.Load.From == FromStack })
}

// Traces reports whether p appends records.
func (p Program) Traces() bool {
	return slices.ContainsFunc(p, func(op Op) bool { return op.Do == OpTrace })
}

// Placing is a program and the event at which it is to run. It does not run for threads
// outside Watch.Threads, which Node.Watch takes as a hint only.
type Placing struct {
	Watch   node.Watch
	Program Program
}

// Placer runs programs where events happen. A method that takes a list handles it as a
// whole, which is much cheaper than one call for each element; all elements concern one
// process. Of each element either the result or the error is nil. The error is a *Refusal
// if a more expensive placement can run the program.
type Placer interface {
	// Name is the name of the placement.
	Name() string
	// Judge returns how programs would run, or why they cannot. Their steps need no stores
	// yet.
	Judge(list []Placing) ([]Verdict, []error)
	// NewStore makes a store for the programs of a process. Only programs of this placer
	// can use it.
	NewStore(p omis.ProcID, k StoreKind) (Store, error)
	// Place installs programs; each runs when SetActive turns it on.
	Place(list []Placing) ([]Placed, []error)
	// Remove removes programs: when it returns, they do not run any more, and the
	// target's code is restored.
	Remove(list []Placed) error
}

// Rester is the capability of a Placer to report that its inactive programs cost almost
// nothing. The engine removes the inactive programs of other placers.
type Rester interface {
	// RestsFree reports whether an inactive program costs a thread almost nothing.
	RestsFree() bool
}

// Placed is an installed program. It vanishes with its code when the process ends or
// executes another program.
type Placed interface {
	Verdict() Verdict
	// SetActive turns the program on or off; a new program is off.
	SetActive(bool)
	// Stands reports whether the code that contains the program still exists.
	Stands() bool
	// Covers reports whether the program changed the code at an address, so that no
	// breakpoint can be set there.
	Covers(addr uint64) bool
	// Lingers reports whether a thread may run the program once more although it was
	// removed: the process is suspended, or a signal handler will return to its code.
	// Until then its stores may still change.
	Lingers() bool
}

// SourceReader is the capability of a Placer to run programs with ClockCell, and to read
// the stores of its programs at once: Store.Rows waits for no thread, so that the goroutine
// that owns a process may call it.
type SourceReader interface {
	ReadsSources() bool
}

// Drainer is the capability of a Placer to make threads leave removed programs that
// linger. It does not wait for the threads.
type Drainer interface {
	Drain([]Placed)
}

// Verdict describes how a placement runs a program.
type Verdict struct {
	Name  string  // of the placement
	Where string  // for users
	Why   string  // reason why it is not a cheaper placement
	Cost  float64 // approximate nanoseconds that an occurrence takes from the thread
	// Kind distinguishes places of one placement that differ in cost, such as
	// instructions that the kernel emulates and others; see Costs.
	Kind string
	// OneIn is the number of occurrences for each one that is timed, if the others cost
	// only Cost.Count at this kind of place; 1 or less means that all cost the same.
	OneIn int64
}

// Refusal is the error of a placement that cannot run a program. It is not a failure: the
// engine tries another placement.
type Refusal struct {
	Why string
	// Passing reports that the reason may disappear soon, for example a thread that was
	// in the way.
	Passing bool
	Cause   error // nil if the placement itself found the reason
}

// Refuse returns the refusal of a placement that an error prevents from running a program.
func Refuse(cause error) *Refusal { return &Refusal{Why: cause.Error(), Cause: cause} }

func (r *Refusal) Error() string { return r.Why }
func (r *Refusal) Unwrap() error { return r.Cause }

// StoreKind is the kind of measurement that a store holds.
type StoreKind uint8

const (
	StoreSums       StoreKind = iota + 1 // OpAdd
	StoreIntervals                       // OpStart, OpStop, OpTake
	StoreTraces                          // OpTrace; such a Store is a Trail
	StoreHistograms                      // as StoreIntervals, with the distribution of their durations: a HistogramStore

	StoreKinds = iota + 1 // the size of an array indexed by StoreKind
)

// HasIntervals reports whether a store of this kind holds intervals.
func (k StoreKind) HasIntervals() bool { return k == StoreIntervals || k == StoreHistograms }

// Store holds a row for each thread of a process that changed it. Its methods may be
// called from any goroutine.
type Store interface {
	// Rows returns the rows since the store was made or reset, including the rows of ended
	// threads; threads that ended long ago share one row (RowsOfEnded). Each row is
	// consistent in itself. The rows are in the order in which the threads first changed
	// the store.
	Rows() ([]Row, error)
	// Reset clears all rows and discards open intervals.
	Reset() error
	// Lost returns the number of occurrences missing from the rows for lack of memory.
	Lost() uint64
	// Close frees the memory. All programs that use the store must have been removed.
	Close() error
}

// RowAppender is the capability of a Store to append its rows to a list, so that a caller
// that reads many stores allocates memory once.
type RowAppender interface {
	AppendRows([]Row) ([]Row, error)
}

// ManyReader is the capability of a Placer to read many of its stores in one pass.
type ManyReader interface {
	// AppendRows appends the rows of the stores to rows, store by store, and the end
	// index of each store's rows to ends. After an error both results are invalid; read
	// the stores one by one to find the failing one.
	AppendRows(stores []Store, rows []Row, ends []int) ([]Row, []int, error)
}

// Row holds the measurements of one thread.
type Row struct {
	TID     int
	Started uint64 // start time of the thread in /proc: distinguishes threads that had this TID at different times
	Alive   bool   // this thread still runs

	Value     int64 // StoreSums; StoreTraces: the number of appended records
	Intervals       // StoreIntervals, StoreHistograms
}

// Intervals summarises the intervals of one thread, in the unit of their clock. Sums are exact.
type Intervals struct {
	Count      int64
	Unfinished int64 // begun, then left by an exception or a longjmp, dropped for lack of memory, or ended when the clock showed less than at the beginning
	Open       int64 // begun, not ended yet
	Skipped    int64 // begun but not sampled; whether they have ended is unknown
	Last       uint64
	Min, Max   uint64
	Sum        Uint128
	Squares    Uint128
}

// Uint128 is an unsigned integer of 128 bits.
type Uint128 struct{ Hi, Lo uint64 }
