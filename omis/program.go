package omis

import "slices"

// A local action list that only counts and measures time is a small program. It
// can run where the event happens, in place of a handler of Node.Watch: that
// place keeps what it measures, and is read when somebody wants to know.

// Operation is what a program does when it runs.
type Operation uint8

const (
	OpAdd   Operation = iota + 1 // add the step's value to the thread's sum
	OpStart                      // open an interval of the thread
	OpStop                       // close the interval that was opened at the same place of the stack
	OpTrace                      // append a record with Op.Mark and the step's value to the thread's trace

	Operations = iota + 1 // more than any operation: for what is kept by operations
)

// Clock is which time is taken, and how where a program takes it in the code of a
// process: other placements have one way alone for the time that passes.
type Clock uint8

const (
	// ClockOrdered waits until what stands before it has been done: an interval contains
	// what it encloses, and nothing of what comes before.
	ClockOrdered Clock = iota
	// ClockFast does not: it costs half as much, and of some tens of instructions at
	// both ends of an interval it is uncertain whether they are in it.
	ClockFast
	// ClockCPU takes the time that the thread has been given on processors, and not what
	// passes meanwhile.
	ClockCPU
)

// Op is one step of a program.
type Op struct {
	Do    Operation
	Value int64 // OpAdd, OpTrace: their value, unless it is loaded
	Load  Load  // OpAdd, OpTrace
	Mark  int32 // OpTrace
	Clock Clock // OpStart, OpStop
	// OneIn is how many intervals of a thread begin for each one that is timed; 1 and
	// less: every one is. OpStart, and OpStop of the same store: it finds no interval
	// where none was opened.
	OneIn int64
	// Histogram tells that the store keeps one; OpStart and OpStop of StoreHistograms.
	Histogram bool
	// Room is how many records of a thread are kept, the newest; OpTrace, of the same store
	// always the same.
	Room  int64
	Store Store // what it changes: of the process that the program runs in
}

// Times tells whether it opens or closes intervals.
func (op Op) Times() bool { return op.Do == OpStart || op.Do == OpStop }

// Program is what to do, step by step.
type Program []Op

// FillsHistogram tells whether it counts intervals in the buckets of one, as they end.
func (p Program) FillsHistogram() bool {
	return slices.ContainsFunc(p, func(op Op) bool { return op.Do == OpStop && op.Histogram })
}

// Traces tells whether it appends records.
func (p Program) Traces() bool {
	return slices.ContainsFunc(p, func(op Op) bool { return op.Do == OpTrace })
}

// Placements is the capability to run programs where events happen.
type Placements interface {
	// Placers are the placements there are, cheapest first. They stay the same.
	Placers() []Placer
}

// Placing is a program, and the event at whose occurrences it is to run. Unlike in
// Node.Watch, Watch.Threads is the whole truth: for other threads the program does not
// run.
type Placing struct {
	Watch   Watch
	Program Program
}

// Placer runs programs where events happen. Whatever takes a list does all of it at
// once, which is much less than one after the other; all of a list concern the same
// process. Of each element of a list either the result or the error is nil. An error is
// a *Refusal where the program can run elsewhere all the same, only dearer.
type Placer interface {
	// Name is the name of the placement.
	Name() string
	// Judge says how programs would run, or why they cannot. Their steps need no
	// stores yet.
	Judge(list []Placing) ([]Verdict, []error)
	// NewStore makes the memory for what programs do in a process. Only this placer's
	// programs can use it.
	NewStore(p ProcID, k StoreKind) (Store, error)
	// Place has programs run from now on, each as soon as it is made active.
	Place(list []Placing) ([]Placed, []error)
	// Remove takes programs away: when it returns, they do not run any more, and the
	// code is what it was.
	Remove(list []Placed) error
}

// Rester is the capability of a Placer whose programs cost a thread next to nothing while
// they are not active. Those of other placers are taken away as soon as they rest.
type Rester interface {
	// RestsFree reports whether they do.
	RestsFree() bool
}

// Placed is a program in its place. It goes by itself with the code it stands in,
// when the process ends or executes another program.
type Placed interface {
	Verdict() Verdict
	// SetActive says whether the program runs; a new one does not.
	SetActive(bool)
	// Stands tells whether the code it was placed in is still there.
	Stands() bool
	// Covers tells whether the code at an address is another while the program stands,
	// so that there cannot be a breakpoint.
	Covers(addr uint64) bool
	// Lingers tells that a thread may run the program once more although it was removed:
	// its process is suspended, or a signal handler will return there. Its stores may be
	// added to until then.
	Lingers() bool
}

// Drainer is the capability of a Placer to have threads leave programs that were removed and
// linger. It does not wait for them.
type Drainer interface {
	Drain([]Placed)
}

// Verdict says where a program runs.
type Verdict struct {
	Name  string  // of the placement
	Where string  // in words
	Why   string  // there, and not where it were cheaper still
	Cost  float64 // nanoseconds that an occurrence takes of the thread, roughly
	// Kind tells apart places of one placement that differ in what they cost, such as
	// instructions that the kernel emulates and others; see Costs.
	Kind string
	// OneIn is how many occurrences there are for one that is timed, where the others cost
	// what counting costs at a place of this kind; 1 and less: there is no difference.
	OneIn int64
}

// Refusal says why a program cannot run at a place. Nothing has failed: there is
// another place.
type Refusal struct {
	Why string
	// Passing reports that the reason may be gone soon: a thread stood in the way, say.
	Passing bool
}

func (r *Refusal) Error() string { return r.Why }

// StoreKind is what a store is for.
type StoreKind uint8

const (
	StoreSums       StoreKind = iota + 1 // OpAdd
	StoreIntervals                       // OpStart, OpStop
	StoreTraces                          // OpTrace; such a Store is a Trail
	StoreHistograms                      // as StoreIntervals, and how many took how long: see HistogramStore

	StoreKinds = iota + 1 // more than any kind
)

// HasIntervals tells whether such a store knows of intervals.
func (k StoreKind) HasIntervals() bool { return k == StoreIntervals || k == StoreHistograms }

// Store holds a row for each thread of a process that changed it. Its methods may
// be called from any goroutine.
type Store interface {
	// Rows are all rows since the store was made or reset, also of threads that
	// have ended; of those that ended long ago there is one for all (RowsOfEnded).
	// Each is consistent in itself; they are in the order in which the threads came.
	Rows() ([]Row, error)
	// Reset forgets all rows, and the intervals that are open.
	Reset() error
	// Lost is how many occurrences left no trace in the rows, for want of memory.
	Lost() uint64
	// Close frees the memory, after all programs that use it were removed.
	Close() error
}

// RowAppender is the capability of a Store to add its rows to a list: who reads many
// stores needs memory once.
type RowAppender interface {
	AppendRows([]Row) ([]Row, error)
}

// ManyReader is the capability of a Placer to read many of its stores with one look.
type ManyReader interface {
	// AppendRows adds the rows of stores to a list, store by store, and to ends where
	// those of each end in it. After an error both are worth nothing: whose fault it is
	// shows where the stores are read one by one.
	AppendRows(stores []Store, rows []Row, ends []int) ([]Row, []int, error)
}

// Row is what a store knows of one thread.
type Row struct {
	TID     int
	Started uint64 // when it began, as /proc has it: tells apart who had this TID one after the other
	Alive   bool   // the thread with this TID is still the one meant here

	Value     int64 // StoreSums; StoreTraces: how many records were appended
	Intervals       // StoreIntervals, StoreHistograms
}

// Intervals sums up the intervals of one thread, in nanoseconds. Sums are exact.
type Intervals struct {
	Count      int64
	Unfinished int64 // begun, and then left by an exception, a longjmp or for want of room
	Open       int64 // begun, not ended yet
	Skipped    int64 // begun, but not to be timed: of none of them it is known whether it ended
	Last       uint64
	Min, Max   uint64
	Sum        Uint128
	Squares    Uint128
}

// Uint128 is an unsigned integer of 128 bits.
type Uint128 struct{ Hi, Lo uint64 }
