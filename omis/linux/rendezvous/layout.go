//go:build linux && amd64

package rendezvous

// hold_amd64.s uses the fields of board and slot and the constants below by the header
// that the compiler generates from them (go_asm.h).

// Slots is the number of threads that can be held at a time; others wait for a slot. Each
// slot has a bit in a word; and the kernel follows a robust list for at most 2,048
// entries.
const Slots = 64

// board is the memory that a monitor and a target share. Words that both write have cache
// lines of their own.
type board struct {
	owner    uint32 // the server's thread; 0: none; FUTEX_OWNER_DIED: it is dead
	_        [60]byte
	bell     uint32 // counts wake-ups; the server waits for it to change
	_        [60]byte
	sleeping uint32 // the server waits, or is about to
	_        [60]byte
	beat     uint32 // changes as long as the server runs
	patience uint32 // number of naps without a beat after which a thread continues; 0: never
	queuing  uint32 // the same as a number of turns
	_        [4]byte
	mark     uint64 // in the numbers of the system calls that threads make in hold
	_        [40]byte
	pend     uint64 // a bit for each slot with a new hit
	_        [56]byte
	full     uint64 // hits that had to wait for a slot
	dead     uint64 // hits that found no monitor, or whose monitor died
	gaveUp   uint64 // hits whose monitor showed no heartbeat
	deep     uint64 // hits in signal handlers that interrupted holds, when all slots were taken
	_        [32]byte
	silent   uint32 // the patience of a thread has ended; no thread is held until the server runs again
	gate     uint32 // not 0: no thread enters a hold
	_        [4096 - 0x188]byte
	slots    [Slots]slot
}

// slot holds one thread. The word is 0 for "continue", the owner while the thread is
// held, with FUTEX_WAITERS while it sleeps, and forsaken when it has given up. "Continue"
// must be 0: if a dead owner left an operation pending, the kernel wakes its waiter only
// if the word is 0.
type slot struct {
	word uint32
	tid  uint32 // thread that has claimed the slot
	_    [8]byte
	regs Registers
	_    [slotSize - 16 - 8*18]byte
}

const (
	slotSize  = 256
	boardSize = 4096 + Slots*slotSize

	futexWaiters   = 0x80000000
	futexOwnerDied = 0x40000000
	futexTIDMask   = 0x3fffffff

	forsaken = futexTIDMask // not a thread's id: those are below 1 << 22
)

// An arena begins with a page for the address of the board, which the kernel clears in a
// forked child (MADV_WIPEONFORK), so that the child is not held. Code follows.
const (
	ArenaSize = 0x10000

	arenaCode  = 0x1000
	arenaMagic = 0x1800
	arenaStubs = 0x2000
	stubSize   = 128
	arenaRoom  = (ArenaSize - arenaStubs) / stubSize
)

// A stub consists of a description of its place, the call of hold, and copies of the
// instructions that the jump displaced.
const (
	stubAddr     = 0  // address of the jump, which hits report
	stubOriginal = 8  // the five bytes that the jump replaced
	stubLength   = 13 // length of the displaced instructions
	stubEntry    = 16 // lea -128(%rsp), %rsp; call hold
	stubCopy     = 26 // return address of hold

	redZone = 128
)

// The frame of hold: registers as in Registers, with a space for RSP, then these.
const (
	frameFlags  = 128
	frameReturn = 136
	frameSize   = 144 + redZone
)

// atRest is in R8 of a thread that waits and may be sent back to its place.
const atRest = 0x74736572207461

// Data of hold on the stack below its frame: a timespec, the last beat seen while all
// slots were taken, whether they were and signals are blocked, and the signals that were
// blocked before.
const (
	localBeat    = 16
	localCrowded = 20
	localMask    = 24
	localSize    = 32

	slotsTaken     = 1
	signalsBlocked = 2
)

// magic identifies an arena of any monitor of this version.
var magic = [16]byte{'m', 'i', 'r', 'a', 'd', 'o', 'r', ' ', 'h', 'o', 'l', 'd', ' ', '3', 0, 0}

// Registers are the registers of a held thread, numbered as in the DWARF ABI (see
// node.Registers). The thread continues with the monitor's changes, at RIP if that was
// changed.
type Registers [18]uint64

// Indices of Registers.
const (
	RAX = iota
	RDX
	RCX
	RBX
	RSI
	RDI
	RBP
	RSP
	R8
	R9
	R10
	R11
	R12
	R13
	R14
	R15
	RIP
	RFlags
)
