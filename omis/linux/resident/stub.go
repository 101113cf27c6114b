//go:build linux && amd64

package resident

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// StubCode makes one system call and then brings the thread back to where it
// was, with all its registers, from a frame on its stack. Whoever sent the
// thread here need not live to see it return.
//
//	0f 05        syscall
//	58           pop  %rax
//	59           pop  %rcx
//	41 5b        pop  %r11
//	5f           pop  %rdi
//	5e           pop  %rsi
//	5a           pop  %rdx
//	41 5a        pop  %r10
//	41 58        pop  %r8
//	41 59        pop  %r9
//	9d           popf
//	c2 c0 00     ret  $0xc0
//
// It restores by pops and not by rt_sigreturn, which would forget how to go on
// with an interrupted nanosleep or futex (the restart block). ret skips the
// call's block of memory and the red zone.
var StubCode = []byte{
	0x0f, 0x05, 0x58, 0x59, 0x41, 0x5b, 0x5f, 0x5e, 0x5a,
	0x41, 0x5a, 0x41, 0x58, 0x41, 0x59, 0x9d, 0xc2, redZone + BlockSize, 0x00,
}

// StubReturn is the offset in StubCode behind the syscall instruction.
const StubReturn = 2

const (
	redZone   = 128
	frameSize = 11 * 8

	// BlockSize is how much memory a call can have on the thread's stack.
	BlockSize = 64
)

// The kernel's private answers of a system call that a stop has interrupted: it
// turns them into a restart on its way back to the program.
const (
	restartSys     = -512
	restartNoIntr  = -513
	restartNoHand  = -514
	restartByBlock = -516
)

// InSyscall tells whether a stopped thread is inside a system call.
func InSyscall(regs *unix.PtraceRegs) bool { return int64(regs.Orig_rax) >= 0 }

// Resumed are the registers a stopped thread goes on with when nobody
// intervenes: those that regs show, or those that make an interrupted system
// call again, as the kernel would have it.
func Resumed(regs unix.PtraceRegs) unix.PtraceRegs {
	if InSyscall(&regs) {
		switch int64(regs.Rax) {
		case restartSys, restartNoIntr, restartNoHand:
			regs.Rax = regs.Orig_rax
			regs.Rip -= 2
		case restartByBlock:
			regs.Rax = unix.SYS_RESTART_SYSCALL
			regs.Rip -= 2
		}
	}
	regs.Orig_rax = ^uint64(0)
	return regs
}

// Call is a system call for a thread to make. Block goes to the thread's stack,
// at the address that BlockAt gives.
type Call struct {
	Number uint64
	Args   [6]uint64
	Block  [BlockSize]byte
}

// BlockAt is where the block of a call will stand that a thread makes which
// would go on with resumed.
func BlockAt(resumed *unix.PtraceRegs) uint64 { return resumed.Rsp - redZone - BlockSize }

// Detour sends a thread that would go on with resumed (see Resumed) through the
// stub: the frame belongs at the stack pointer of the registers returned.
func Detour(resumed unix.PtraceRegs, stub uint64, c Call) (regs unix.PtraceRegs, frame []byte) {
	regs = resumed
	regs.Rsp = BlockAt(&resumed) - frameSize
	regs.Rip = stub
	regs.Rax, regs.Orig_rax = c.Number, ^uint64(0)
	regs.Rdi, regs.Rsi, regs.Rdx = c.Args[0], c.Args[1], c.Args[2]
	regs.R10, regs.R8, regs.R9 = c.Args[3], c.Args[4], c.Args[5]
	for _, v := range []uint64{
		resumed.Rax, resumed.Rcx, resumed.R11, resumed.Rdi, resumed.Rsi, resumed.Rdx,
		resumed.R10, resumed.R8, resumed.R9, resumed.Eflags, resumed.Rip,
	} {
		frame = binary.LittleEndian.AppendUint64(frame, v)
	}
	return regs, append(frame, c.Block[:]...)
}

// Reissued are the registers that make a system call again at whose entry a
// thread is stopped.
func Reissued(regs unix.PtraceRegs) unix.PtraceRegs {
	regs.Rax = regs.Orig_rax
	regs.Rip -= 2
	regs.Orig_rax = ^uint64(0)
	return regs
}

// GiveUp changes registers so that a system call that the stop interrupted is
// not made again: it has failed with EINTR.
func GiveUp(regs *unix.PtraceRegs) {
	if resumed := Resumed(*regs); resumed.Rip != regs.Rip {
		regs.Rax = negative(unix.EINTR)
	}
	regs.Orig_rax = ^uint64(0)
}

func negative(e unix.Errno) uint64 { return -uint64(e) }
