//go:build linux && amd64

package rendezvous

// The assembler in hold_amd64.s knows the fields of board and slot, and the
// constants here, by the header the compiler makes of them (go_asm.h).

// Slots is how many threads can be held at a time; those beyond wait for a slot.
// Each has a bit in a word, and the kernel follows a robust list for 2,048
// entries.
const Slots = 64

// board is the memory a monitor and a target share. The words they both write
// have cache lines of their own.
type board struct {
	owner    uint32 // the server's thread; 0: nobody; FUTEX_OWNER_DIED: its death
	_        [60]byte
	bell     uint32 // counts rings, the server waits for it to change
	_        [60]byte
	sleeping uint32 // the server waits, or is about to
	_        [60]byte
	beat     uint32 // changes as long as the server is alive and kicking
	patience uint32 // how many naps without a beat a thread endures; 0: any number
	queuing  uint32 // how many turns
	_        [52]byte
	pend     uint64 // a bit for each slot that nobody has looked at yet
	_        [56]byte
	full     uint64 // hits that had to wait for a slot
	dead     uint64 // hits that found no monitor, or lost it
	gaveUp   uint64 // hits whose monitor did not stir
	deep     uint64 // hits in signal handlers on top of holds, when all slots were taken
	_        [32]byte
	silent   uint32 // a thread lost patience; nobody is held until the server stirs
	gate     uint32 // not 0: nobody goes into a hold
	_        [4096 - 0x188]byte
	slots    [Slots]slot
}

// slot is where one thread is held. The word is 0 for "go on", the owner while
// the thread is held, with FUTEX_WAITERS while it sleeps, forsaken when it has
// given up. Zero has to be "go on": the kernel wakes the waiter of an operation a
// dead owner left pending only where the word is zero.
type slot struct {
	word uint32
	tid  uint32 // who has claimed the slot
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

	forsaken = futexTIDMask // no thread's id: those end at 1 << 22
)

// An arena begins with a page for the address of the board, which a forked child
// finds empty (MADV_WIPEONFORK): nobody waits for it. Then comes code.
const (
	ArenaSize = 0x10000

	arenaCode  = 0x1000
	arenaMagic = 0x1800
	arenaStubs = 0x2000
	stubSize   = 128
	arenaRoom  = (ArenaSize - arenaStubs) / stubSize
)

// A stub is a description of its place, the call of hold, and the copies of the
// instructions that the jump displaced.
const (
	stubAddr     = 0  // where the jump stands, and what hits report
	stubOriginal = 8  // the five bytes it displaced
	stubLength   = 13 // of the displaced instructions
	stubEntry    = 16 // lea -128(%rsp), %rsp; call hold
	stubCopy     = 26 // where hold returns to

	redZone = 128
)

// The frame that hold makes: registers as in Registers, but for RSP, then these.
const (
	frameFlags  = 128
	frameReturn = 136
	frameSize   = 144 + redZone
)

// atRest is in R8 of a thread that waits and may be sent back to its place.
const atRest = 0x74736572207461

// What hold has on the stack below its frame: a timespec, the last beat seen
// while all slots were taken, whether they were, and the signals that were
// blocked before it blocked them all.
const (
	localBeat    = 16
	localCrowded = 20
	localMask    = 24
	localSize    = 32

	slotsTaken     = 1
	signalsBlocked = 2
)

// magic tells an arena of ours, also to a monitor that did not make it.
var magic = [16]byte{'m', 'i', 'r', 'a', 'd', 'o', 'r', ' ', 'h', 'o', 'l', 'd', ' ', '2', 0, 0}

// Registers of a held thread, in the numbering of the DWARF ABI (see
// omis.Registers). What the monitor changes is there when the thread goes on; a
// changed RIP is where it goes on.
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
