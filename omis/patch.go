package omis

// A monitor can put code of its own into a live program, so that a thread that reaches
// an address runs it and goes on, without being held and without anybody else being
// woken up. What the code does is the business of whoever makes it (package
// omis/place/inline); how it gets there and away again without harm is the node's.

// Patcher is the capability to put code into programs. An error is a *Refusal where
// that cannot be done, but the address may be watched by other means.
type Patcher interface {
	// Ground prepares a process for patches: memory that it shares with the monitor
	// is mapped into it, at most once until it ends or executes another program.
	Ground(p ProcID) (Ground, error)
	// Survey tells for each address why no code can be put there; nil: it can.
	Survey(p ProcID, addrs []uint64) []error
	// GoCode tells of each address whether the code there is of Go.
	GoCode(p ProcID, addrs []uint64) []GoCode
	// Patch puts code where it is wanted, all at once: the threads of the process are
	// stopped a single time, however long the list. Of each patch either the result or
	// the error is nil. New patches are off. Several may stand at one address; they run
	// in the order in which they came.
	Patch(p ProcID, list []Patch) ([]Patched, []error)
	// Unpatch takes code away, all at once as well. When it returns, no thread runs the
	// code any more or ever will, and the program's own bytes are back. With an error
	// threads may do so yet, and in a process that is suspended: see Patched.Lingers. It
	// may be called again then.
	Unpatch(p ProcID, list []Patched) error
}

// Ground is what the patches of a process have in common. It lasts until the process
// ends or executes another program.
type Ground interface {
	// Shared is the shared memory as the monitor sees it, zero at first. Pages that
	// nobody touches take no room, so there should be a lot: 256 GB, where the process
	// may have that much in its address space. It can be read until Close, also when
	// the process has ended.
	Shared() []byte
	// Base is where the process has that memory.
	Base() uint64
	// TID is where a thread finds its own number: 4 bytes at this distance from the
	// address in its register fs. Its C library keeps it there, also after a fork.
	TID() int32
	// Self tells that the thread finds the address in its register fs in memory as well,
	// at fs:0, as the x86-64 ABI has it; else only rdfsbase tells.
	Self() bool
	// Gone tells that the process has ended, or executes another program.
	Gone() bool
	// Close ends the monitor's sight of the memory. Nobody asks for anything any more,
	// and there are no patches.
	Close() error
}

// NobodysPage is where the shared memory of a Ground may have a page that the process
// cannot touch: nobody puts anything into the 4 KB there.
const NobodysPage = 0x2ff000

// Heir is the Ground of a process in which an earlier monitor has put code; it is as
// that one left it, its shared memory too, also where none of the code stands any more.
type Heir interface {
	Ground
	// Left are the patches that stand since then, on or off, and go on to work with the
	// same shared memory, until Patcher.Unpatch. Those at one address are in the order
	// in which they came.
	Left() []Patched
}

// Patch is code for an address.
type Patch struct {
	Addr uint64
	// Reads are the arguments of a function that the code reads. Where Addr is the beginning
	// of a function, the code may run behind its first instruction, unless that changes one
	// of them.
	Reads Arguments
	// Make makes the code, which must leave all registers, the flags and the memory
	// around the stack pointer as they are, and goes on behind its last byte. It is
	// called once or more, at any time during Patcher.Patch, and always answers with
	// the same number of bytes.
	Make func(Spot) ([]byte, error)
}

// Arguments is a set of the arguments of Args: bit i is the i-th.
type Arguments uint8

// Spot is what code has to know of the place it is made for.
type Spot struct {
	Addr uint64 // of the patch
	Code uint64 // where the code will stand: within 2 GB of Addr and Switch, but not of shared memory
	// Switch is the address of a byte that is 0 while the code must do nothing: before
	// the patch is turned on, after it was turned off, and in the child of a fork.
	Switch uint64
	// Entry tells that Addr is where a function begins and that the flags mean nothing where
	// the code runs, and nothing is below the stack pointer. All registers matter.
	Entry bool
	// Return tells that the instruction at Addr returns from a function: again the flags
	// mean nothing, and there is nothing below the stack pointer.
	Return bool
	// Pushed is how far the stack pointer is below where the program has it at Addr: the
	// code may run behind the first instruction of a function.
	Pushed int32
}

// Patched is code in its place. It goes by itself when the process ends or executes
// another program.
type Patched interface {
	Addr() uint64
	// Switch is that of its Spot: no two have the same.
	Switch() uint64
	// Covers tells whether the instruction at an address is another, or none, while the
	// code is in its place, or is the one that the code was asked for.
	Covers(addr uint64) bool
	// Exclusive tells why no other tool may set a uprobe at the beginning of the function
	// while the code is in its place; "": any tool may.
	Exclusive() string
	// Lingers tells that a thread may run the code yet although it was taken away.
	Lingers() bool
	// SetActive turns the code on or off, by one byte of memory.
	SetActive(bool) error
}
