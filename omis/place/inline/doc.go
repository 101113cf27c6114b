// Package inline is the placement "inline": programs that count and measure time run as
// machine code in the program itself (program.Placer). A thread that comes by takes the code
// along as if it were the program's own; nobody is held or woken up, no system call is
// made. A hit costs some nanoseconds.
//
// # What a program consists of
//
// Package inline makes the code, and an node.Patcher puts it into the process. It works on
// memory that the process shares with the monitor (layout.go). Each thread has a slot
// there, which it finds by its number: that stands in its own memory, so that no
// system call is needed. It has a row of its own for each cell, so nothing is lost and
// nothing locked. A thread that ended leaves its slot to nobody, until the monitor has
// moved its rows away. Where all slots are taken, threads share one: they add to its
// rows by locked instructions, so that none of what they count is lost, but it is not known
// whose it is. Intervals need a slot of the thread's own, and are lost without.
//
// # Who is who
//
// No two threads have the same number at a time. One that gets the number of another
// before the monitor has seen that that one ended, which takes it half a second,
// would be taken for it; the kernel gives a number again after some ten thousand
// others. The child of a vfork reads its parent's number in its parent's memory, and
// counts as its parent until it executes another program. The child of a fork does not
// count at all.
//
// # Programs in Go
//
// A goroutine may return from a function on another thread than it was called on, and the
// runtime may have moved its stack meanwhile. Open intervals of functions in Go are kept by
// goroutines (goroutine.go); what was measured is added to the row of the thread on which
// the interval ends.
//
// # Signals
//
// A handler may interrupt the code anywhere and run the same code on the same row: what
// is added is added by single instructions, and what belongs together becomes valid by
// the one that is written last. A handler that leaves by siglongjmp may leave one
// measurement of a timer in some of its values only; a count is never wrong.
//
// # Reading
//
// The monitor reads rows while threads write them, and stops nobody: a row has a number
// that is written before and another that is written after each change. A thread may
// lose its processor between the two; who reads then waits for it, but not long. One that
// was stopped there (SIGSTOP) has its row told as it is: a measurement may be in its sum
// but not in the sum of squares, say.
//
// # Who may use it
//
// Only cli imports this package, to hand a Placer to the engine along with the node, and
// bench. It imports omis, and what it reads in /proc. A Placer and its stores may be used
// from any goroutine; one goroutine of its own looks after slots. What belongs to a
// process is guarded by a lock for each process; whoever has it may ask the patcher, which
// never asks back.
package inline
