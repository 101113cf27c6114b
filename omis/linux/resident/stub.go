//go:build linux && amd64

package resident

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// StubCode makes one system call and then restores all registers of the thread, with the
// address to continue at, from a frame on its stack. So it does not need the monitor any
// more when it returns.
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
// It uses pops because rt_sigreturn would discard the restart block of an interrupted
// nanosleep or futex. ret skips the call's block of memory and the red zone.
var StubCode = []byte{
	0x0f, 0x05, 0x58, 0x59, 0x41, 0x5b, 0x5f, 0x5e, 0x5a,
	0x41, 0x5a, 0x41, 0x58, 0x41, 0x59, 0x9d, 0xc2, redZone + BlockSize, 0x00,
}

// StubReturn is the offset in StubCode behind the syscall instruction.
const StubReturn = 2

const (
	redZone   = 128
	frameSize = 11 * 8

	// BlockSize is the size of the memory that a call can use on the thread's stack.
	BlockSize = 64
)

// Results that the kernel gives internally to a system call that a stop has interrupted;
// on the way back to the program it restarts the call.
const (
	restartSys     = -512
	restartNoIntr  = -513
	restartNoHand  = -514
	restartByBlock = -516
)

// InSyscall reports whether a stopped thread is in a system call.
func InSyscall(regs *unix.PtraceRegs) bool { return int64(regs.Orig_rax) >= 0 }

// Resumed returns the registers with which a stopped thread continues without
// intervention: regs, or, after an interrupted system call, the registers with which the
// kernel would repeat the call.
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

// Call is a system call that the monitor lets a thread make. Block is copied to the
// thread's stack, at the address that BlockAt returns.
type Call struct {
	Number uint64
	Args   [6]uint64
	Block  [BlockSize]byte
}

// BlockAt returns the address of the block of a call; resumed are the registers with
// which the thread would continue otherwise.
func BlockAt(resumed *unix.PtraceRegs) uint64 { return resumed.Rsp - redZone - BlockSize }

// Detour makes a thread go through the stub. resumed is the result of Resumed for its
// registers. The caller must write the frame at the stack
// pointer of the returned registers.
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

// Reissued returns the registers that repeat a system call at whose entry a thread is
// stopped.
func Reissued(regs unix.PtraceRegs) unix.PtraceRegs {
	regs.Rax = regs.Orig_rax
	regs.Rip -= 2
	regs.Orig_rax = ^uint64(0)
	return regs
}

// GiveUp changes registers so that a system call that the stop interrupted is not
// repeated, but fails with EINTR.
func GiveUp(regs *unix.PtraceRegs) {
	if resumed := Resumed(*regs); resumed.Rip != regs.Rip {
		regs.Rax = negative(unix.EINTR)
	}
	regs.Orig_rax = ^uint64(0)
}

func negative(e unix.Errno) uint64 { return -uint64(e) }
