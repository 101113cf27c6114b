// Package kernel is the placement "kernel": programs that count and measure time run as eBPF programs in
// the kernel (program.Placer). At an address of a process they run at a uprobe, at system calls and
// scheduling events they run at tracepoints. The thread is not held, and no other process runs. A hit of
// a uprobe costs two thirds of a microsecond if the kernel emulates the instruction there, and about ten
// times as much if it has to single-step the thread.
//
// # What a program consists of
//
// Package code assembles the eBPF programs and describes the memory that they work on. This package
// makes that memory (memory.go): a slab with the parameters of programs (slab.go), and pools with the rows
// of stores (pool.go, store.go). The monitor maps both, so it reads rows without a system call.
//
// Programs at addresses (uprobes.go): one eBPF program serves all addresses with the same steps. Up to a
// thousand uprobes of one file are set and removed together, by one link (bunch.go). To remove only some of
// them, the others are set again by a second link. site.go decides where a uprobe may be set and what a hit
// costs there; pad.go and others.go are special cases of this.
//
// Programs at events (events.go, scheduling.go): each tracepoint has one attached program (hook.go), which
// continues by a tail call with the program of the process whose event it is (records.go).
//
// # Words
//
// Besides the words of the glossary, the comments here use these:
//
//	site   an address for a uprobe: of a process, and as an offset in the file that is mapped there
//	unit   16 bytes of the slab, or their number (code.Unit); it identifies a store, a process or a spot
//	spot   the units with the parameters of the program at one address
//	shape  what programs at different addresses have in common, so that they can share an eBPF program
//	bunch  programs of one shape at addresses of one file, whose uprobes one link sets and removes
//	point  an event of the kernel for which a process has a program, such as the start of write
//	slot   the number of such a program in the table from which the root program takes it
//	page   a record of the journal with rows of ended threads
//
// # Life
//
// Programs, maps and uprobes belong to file descriptors of the monitor. When the monitor dies, by whatever
// signal, the kernel removes the uprobes and restores the code; the target notices nothing. Programs and
// stores that shall persist (program.Keeper) are pinned in the BPF file system, and records about them are in
// a journal (keeper.go, package persist). They continue to work until the next monitor adopts them
// (adopt.go, leftovers.go).
//
// While the monitor lives, a separate process sets and removes uprobes, which is not killed with the monitor
// (package registrar). If that process is killed, mend.go removes what the kernel leaks.
//
// If a process executes another program, its hits count no longer, although the kernel sets the uprobes again
// in files that both programs map. Children of a fork do not count either.
//
// # Who may use it
//
// Only cli, bench, torture/sweep and tests import it, to pass a Placer to the engine together with the node.
// A Placer and its stores may be used from any goroutine. One goroutine of the Placer frees rows of ended
// threads. Three locks are taken in this order: uprobes.planting while uprobes are set and removed; memory.mu
// for all tables; and the lock of a pool for its rows and stores.
package kernel
