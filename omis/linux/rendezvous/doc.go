// Package rendezvous holds threads of a target without tracing them: a jump at a place in
// the program leads to code that writes the thread's registers into memory shared with
// the monitor, wakes the monitor, and waits there until the monitor lets it continue. A
// hit costs two switches between processes and no stop.
//
// # Parts
//
//	board   shared memory: the monitor's identity, a bell, and the slots in which threads are held
//	arena   the target's own memory, near the code: the routine hold, and a stub for each place
//	place   five bytes of the program that are replaced by a jump to its stub
//
// A Site is all of these in one target; a Server is the monitor's side of its board.
// Arenas stay in the target forever, because a thread may be in them; the board is
// removed when no thread can be in hold.
//
// # How the monitor's death frees the threads
//
// The words that threads wait for are on the robust list of the server's OS thread
// (get_robust_list(2)): however the monitor ends, the kernel marks them and wakes the
// waiters. The list begins with the word that names the owner, so a thread that comes too
// late to be marked sees that the owner is gone. If the monitor is only stopped, its
// heartbeat stops, and after Config.Patience the threads continue by themselves; then no
// thread waits until the monitor runs again.
//
// # Limits
//
// A forked child is not held, and the jumps in its text do no harm. A vfork child, which
// shares its parent's memory, is held under its own thread id: the handler sees that the
// id belongs to no thread of the process. A thread that leaves a hold by longjmp, or is
// cancelled there, keeps its slot until it ends (see Server.Reclaim). Hold changes no
// vector register, so a tracer of a held thread can read them from the thread; the other
// registers are in Hit.Regs, until Server.Extract hands the thread over to its tracer.
//
// # Ownership
//
// A Site belongs to the goroutine that owns the process; the threads of the process must
// be stopped while the Site changes. A Server has a goroutine of its own, locked to its
// OS thread, on which handlers run. Only omis/linux and its subpackages may import this
// package.
package rendezvous
