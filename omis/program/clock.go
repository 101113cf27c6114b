package program

// Clock selects what an interval measures: the difference of the values that the clock shows
// at its end and at its beginning. The first two differ in how inline programs read the
// time; other placements have only one way to read the elapsed time.
type Clock uint8

const (
	// ClockOrdered waits for the preceding instructions to complete: an interval contains
	// all it encloses and nothing that comes before.
	ClockOrdered Clock = iota
	// ClockFast does not wait: it costs half as much, and an interval may or may not
	// include some tens of instructions at both ends.
	ClockFast
	// ClockCPU takes the processor time of the thread instead of the elapsed time.
	ClockCPU
	// ClockCell takes the value that another cell has of the thread (Op.Source): of a sum
	// its value, of intervals their sum.
	ClockCell
	// The other clocks take a number that the kernel keeps of the thread.
	ClockMinorFaults // page faults that read no disk
	ClockMajorFaults // page faults that waited for a disk
	ClockVoluntary   // how often the thread gave up its processor to wait
	ClockInvoluntary // how often the thread lost its processor to another
	ClockQueued      // time for which the thread was ready and waited for a processor, in nanoseconds
	ClockWaiting     // time for which the thread was not ready, in nanoseconds
	ClockRead        // bytes that the thread read by system calls
	ClockWritten     // bytes that the thread wrote by system calls
	ClockDiskRead    // bytes that disks read for the thread
	ClockDiskWritten // bytes that the thread caused to be written to disks
	ClockFaults      // page faults of both kinds
	ClockMigrations  // how often the thread was moved to another processor
	// ClockMeter takes what the kernel's performance counters count in the thread. Only the monitor reads it.
	ClockMeter

	Clocks = iota // the size of an array indexed by Clock
)

// IsElapsed reports whether the clock shows the elapsed time.
func (c Clock) IsElapsed() bool { return c <= ClockFast }

// IsTime reports whether probes read the clock while it runs, so that intervals contain a part
// of what the probes cost.
func (c Clock) IsTime() bool { return c <= ClockCPU }

// IsOfTask reports whether the clock is a number that the kernel keeps of a thread.
func (c Clock) IsOfTask() bool { return c > ClockCell && c != ClockMeter }

// IsSteady reports whether such a number stays as it is while the thread is held, so that the monitor
// can read it, too. Context switches and times of waiting do not.
func (c Clock) IsSteady() bool {
	switch c {
	case ClockMinorFaults, ClockMajorFaults, ClockFaults, ClockRead, ClockWritten, ClockDiskRead, ClockDiskWritten:
		return true
	}
	return false
}
