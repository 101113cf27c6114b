// Package inline is the placement "inline": programs that count and measure time run as machine code in the
// target itself (program.Placer). A thread runs the code as if it belonged to the target's program. The
// thread is not held, and makes no system call. A hit costs some nanoseconds.
//
// # What a program consists of
//
// Package inline makes the code, and a node.Patcher puts it into the process. The code works on memory that
// the process shares with the monitor (layout.go). Each thread has a slot there, which it finds by its thread
// number; the number is in the thread's own memory, so this takes no system call. The slot has a row for each
// cell, which no other thread writes, so there are no locks and no hit is lost. When a thread ends, its slot
// stays taken until the monitor has moved its rows away. If all slots are taken, further threads share one
// slot. They add to its rows by locked instructions; no count is lost, but it is not known which thread it
// was. Intervals need a slot of the thread's own; without one they count as lost.
//
// # Threads
//
// No two threads have the same number at a time. If a thread ends and a new one gets its number before the
// monitor has freed the slot, which takes half a second, both count as one thread. The kernel uses a number
// again only after some ten thousand others. The child of a vfork has its parent's memory, finds its
// parent's number there, and counts as its parent until it executes another program. The child of a fork
// does not count.
//
// # Programs in Go
//
// A goroutine may return from a function on another thread than it was called on, and the runtime may have
// moved its stack meanwhile. So open intervals of functions in Go belong to goroutines (goroutine.go). The
// duration is added to the row of the thread on which the interval ends.
//
// # Signals
//
// A signal handler may interrupt the code anywhere and run the same code on the same row. So sums are changed
// by single instructions, and of several related words the last one that is written makes the others valid.
// If a handler ends by siglongjmp, one measurement of a timer may be in only some of its values; a count is
// never wrong.
//
// # Reading
//
// The monitor reads rows while threads write them. A row has a number that is written before each change and
// another that is written after it. If they differ, the monitor reads again, for a limited time, because the
// thread may have lost its processor in the middle. If the thread was stopped there (SIGSTOP), the monitor
// reports the row as it is: a measurement may be in the sum and not in the sum of squares, for example.
//
// # Who may use it
//
// Only cli, bench, torture/sweep and tests import this package, to pass a Placer to the engine together with
// the node. A Placer and its stores may be used from any goroutine. One goroutine of the Placer looks after
// slots. Each process has a lock for everything that belongs to it. A goroutine that holds the lock may call
// the patcher, which never calls back.
package inline
