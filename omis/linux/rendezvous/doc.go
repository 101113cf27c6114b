// Package rendezvous holds threads of a target without tracing them: a jump at
// a place in the program leads to code that writes the thread's registers into
// memory shared with the monitor, rings, and waits there for its word to go on.
// A hit costs two switches between processes and no stop.
//
// # What stands where
//
//	board   shared memory: who the monitor is, a bell, and the slots threads are held in
//	arena   the target's own memory, near the code: the routine hold, and a stub for each place
//	place   five bytes of the program, a jump to its stub
//
// A Site is all of these in one target; a Server is the monitor's side of its
// board. Arenas stay in the target for ever, a thread may be in them; the board
// goes when nobody can be in a hold.
//
// # How the monitor's death frees the threads
//
// The words threads wait for are on the robust list of the server's OS thread
// (get_robust_list(2)): however the monitor ends, the kernel marks them and wakes
// the waiters. The list begins with the word that names the owner, so a thread
// that comes too late to be marked sees that the owner is gone. A monitor that
// is merely stopped shows no heartbeat, and after Config.Patience threads go on
// by themselves; from then on nobody waits, until it stirs.
//
// # What it does not do
//
// A forked child is not held, and finds the jumps in its text harmless. A vfork
// child, which shares its parent's memory, is held under its own thread id: the
// handler sees that it is no thread of the process. A thread that leaves a hold
// by longjmp, or is cancelled there, keeps its slot until it ends (see
// Server.Reclaim). No vector register is touched, so whoever traces a held
// thread reads them from it; the others are in Hit.Regs, until Server.Extract
// hands the thread over to its tracer.
//
// # Who owns what
//
// A Site belongs to the goroutine that owns the process, whose threads must be
// stopped while it changes. A Server has a goroutine of its own, locked to its
// OS thread, on which handlers run. Only omis/linux and its subpackages may
// import this package.
package rendezvous
