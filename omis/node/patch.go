package node

import (
	"mirador/omis"
)

// A monitor can put code of its own into a live program, so that a thread that reaches an
// address runs the code and goes on, without being held and without waking another
// thread. Package omis/place/inline generates the code; the node inserts and removes it
// safely.

// Patcher is the capability to put code into programs. If this is impossible but the
// address may be watched by other means, the error is a *Refusal.
type Patcher interface {
	// Ground prepares a process for patches: it maps memory that the process shares with
	// the monitor, at most once until the process ends or executes another program.
	Ground(p omis.ProcID) (Ground, error)
	// Survey returns for each address the reason why it cannot be patched, nil if it can,
	// and what Exclusive and Misses of the patch would return.
	Survey(p omis.ProcID, addrs []uint64) (notes []string, errs []error)
	// GoCode describes for each address whether the code there is Go.
	GoCode(p omis.ProcID, addrs []uint64) []GoCode
	// Patch inserts code at all addresses of the list and stops the process's threads
	// only once for it. Of each patch either the result or the error is nil. New patches
	// are off. Several patches may share an address; they run in the order of insertion.
	Patch(p omis.ProcID, list []Patch) ([]Patched, []error)
	// Unpatch removes all patches of the list together. When it returns, no thread runs
	// their code now or later, and the program's own bytes are restored. After an error,
	// and in a suspended process, threads may still run the code: see Patched.Lingers.
	// Unpatch may then be called again.
	Unpatch(p omis.ProcID, list []Patched) error
}

// Ground holds what the patches of a process share. It lasts until the process ends or
// executes another program.
type Ground interface {
	// Shared returns the shared memory as the monitor maps it, initially zero. Untouched
	// pages use no memory, so it is large: 256 GB, if the address space limit of the
	// process allows it. It is readable until Close, even after the process ended.
	Shared() []byte
	// Base returns the address of that memory in the process.
	Base() uint64
	// TID returns the offset from the address in register fs at which a thread finds its
	// own number, 4 bytes long. The C library keeps it there, also after a fork.
	TID() int32
	// Self reports whether memory at fs:0 contains the address in register fs, as the
	// x86-64 ABI requires; otherwise only rdfsbase can read it.
	Self() bool
	// Gone reports whether the process has ended or executes another program.
	Gone() bool
	// Close unmaps the memory from the monitor. The caller has removed all patches and
	// makes no further calls.
	Close() error
}

// NobodysPage is the offset in the shared memory of a Ground at which a page may be
// inaccessible to the process: leave these 4 KB unused.
const NobodysPage = 0x2ff000

// Leftover is the Ground of a process that an earlier monitor has patched. It and its shared
// memory are unchanged, even if none of the patches is left.
type Leftover interface {
	Ground
	// Left returns the earlier monitor's patches, on or off. They keep working with the
	// same shared memory until Patcher.Unpatch removes them. Patches at one address are
	// in the order of insertion.
	Left() []Patched
}

// Patch is code to insert at an address.
type Patch struct {
	Addr uint64
	// Reads is the set of function arguments that the code reads. If Addr is the
	// beginning of a function, the node may run the code after the function's first
	// instruction, provided that this instruction changes none of these arguments.
	Reads Arguments
	// Make generates the code. The code must preserve all registers, the flags and the
	// memory around the stack pointer, and continue behind its last byte. Patcher.Patch
	// calls Make once or more, at any time; each call must return the same number of
	// bytes.
	Make func(Spot) ([]byte, error)
}

// Arguments is a set of the arguments in Args: bit i stands for the i-th.
type Arguments uint8

// Spot describes the place for which Make generates code.
type Spot struct {
	Addr uint64 // of the patch
	Code uint64 // address of the code: within 2 GB of Addr and Switch, but not of shared memory
	// Switch is the address of a byte that is 0 while the code must do nothing: before
	// the patch is turned on, after it was turned off, and in the child of a fork.
	Switch uint64
	// Entry reports that Addr is the beginning of a function, that the flags need not be
	// preserved, and that the memory below the stack pointer is unused. All registers
	// must be preserved.
	Entry bool
	// Return reports that the instruction at Addr returns from a function: the flags need
	// not be preserved, and the memory below the stack pointer is unused.
	Return bool
	// Pushed is how much lower the stack pointer is than at Addr, because the code may run
	// after the first instruction of a function.
	Pushed int32
}

// Patched is an inserted patch. It vanishes when the process ends or executes another
// program.
type Patched interface {
	Addr() uint64
	// Switch returns the Switch of the patch's Spot; each patch has a different one.
	Switch() uint64
	// Covers reports whether the patch replaced or displaced the instruction at an
	// address, or was inserted there.
	Covers(addr uint64) bool
	// Exclusive returns the reason why no other tool may set a uprobe at the beginning of
	// the function while the patch is present, "" if any tool may.
	Exclusive() string
	// Misses describes the occurrences for which the code does not run, "" if it runs for all.
	Misses() string
	// Lingers reports whether a thread may still run the code although Unpatch removed
	// the patch.
	Lingers() bool
	// SetActive turns the code on or off by changing one byte of memory.
	SetActive(bool) error
}
