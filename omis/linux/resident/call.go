//go:build linux && amd64

package resident

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// ReturnCode is the code that a thread runs after it has called a function for the monitor in
// the middle of a system call: the function returns to it. It restores all registers of the
// thread and repeats the system call. Its frame begins at the stack pointer.
//
//	b8 ff ff ff ff              mov    $-1,%eax
//	ba ff ff ff ff              mov    $-1,%edx
//	48 0f ae ac 24 c0 00 00 00  xrstor64 0xc0(%rsp)
//	58 59 41 5b 5f 5e 5a        pop    %rax, %rcx, %r11, %rdi, %rsi, %rdx
//	41 5a 41 58 41 59           pop    %r10, %r8, %r9
//	5b 5d                       pop    %rbx, %rbp
//	41 5c 41 5d 41 5e 41 5f     pop    %r12, %r13, %r14, %r15
//	9d                          popf
//	5c                          pop    %rsp
//	c2 80 00                    ret    $0x80
//
// Like StubCode it does not use rt_sigreturn, which would discard the restart block of an
// interrupted nanosleep or futex. The last two instructions take the address to continue
// at from below the red zone, and skip the red zone.
var ReturnCode = []byte{
	0xb8, 0xff, 0xff, 0xff, 0xff, 0xba, 0xff, 0xff, 0xff, 0xff,
	0x48, 0x0f, 0xae, 0xac, 0x24, stateAt, 0x00, 0x00, 0x00,
	0x58, 0x59, 0x41, 0x5b, 0x5f, 0x5e, 0x5a, 0x41, 0x5a, 0x41, 0x58, 0x41, 0x59,
	0x5b, 0x5d, 0x41, 0x5c, 0x41, 0x5d, 0x41, 0x5e, 0x41, 0x5f,
	0x9d, 0x5c, 0xc2, redZone, 0x00,
}

const (
	stateAt     = 0xc0 // offset of the extended state in a frame
	stateAlign  = 64
	savedRegs   = 17
	offsetCalls = 0x800
)

// Return is the address of ReturnCode.
func (h Home) Return() uint64 { return uint64(h) + offsetCalls }

// CallFrame makes a thread call the function at an address and return to ReturnCode;
// resumed is the result of Resumed for its registers, and state is its extended state in the
// format of XSAVE. The caller must write the frame at
// the stack pointer of the returned registers, which is aligned as at the entry of any
// function.
func CallFrame(resumed unix.PtraceRegs, function, back uint64, state []byte) (regs unix.PtraceRegs, frame []byte) {
	onward := resumed.Rsp - redZone - 8
	begin := (onward - stateAt - uint64(len(state))) &^ (stateAlign - 1)
	regs = resumed
	regs.Rsp, regs.Rip = begin-8, function
	frame = make([]byte, onward+8-regs.Rsp)
	for i, v := range [1 + savedRegs]uint64{
		back, resumed.Rax, resumed.Rcx, resumed.R11, resumed.Rdi, resumed.Rsi, resumed.Rdx,
		resumed.R10, resumed.R8, resumed.R9, resumed.Rbx, resumed.Rbp,
		resumed.R12, resumed.R13, resumed.R14, resumed.R15, resumed.Eflags, onward,
	} {
		binary.LittleEndian.PutUint64(frame[8*i:], v)
	}
	copy(frame[8+stateAt:], state)
	binary.LittleEndian.PutUint64(frame[len(frame)-8:], resumed.Rip)
	return regs, frame
}

// Some system calls do nothing and fail with EINTR whenever their thread is stopped
// (signal(7)). The kernel does not restart them.

// Repeated returns the registers that repeat an interrupted system call: one that the
// kernel would restart (see Resumed), or one that has failed with EINTR.
func Repeated(regs unix.PtraceRegs) unix.PtraceRegs {
	if failsWhenStopped(&regs) {
		return Reissued(regs)
	}
	return Resumed(regs)
}

// Spare changes the registers of a thread whose system call failed with EINTR because the
// thread was stopped: the kernel will repeat the call, unless a signal handler runs
// first. Spare does not change a call with a timeout, which would begin again: in a
// program that is stopped often, it would never end.
func Spare(regs *unix.PtraceRegs) bool {
	if !failsWhenStopped(regs) || !waitsForEver(regs) {
		return false
	}
	result := int64(restartNoHand)
	regs.Rax = uint64(result)
	return true
}

func failsWhenStopped(regs *unix.PtraceRegs) bool {
	if !InSyscall(regs) || regs.Rax != negative(unix.EINTR) {
		return false
	}
	switch regs.Orig_rax {
	case unix.SYS_EPOLL_WAIT, unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_RT_SIGTIMEDWAIT:
		return true
	}
	return false
}

// waitsForEver reports whether one of these calls has no timeout.
func waitsForEver(regs *unix.PtraceRegs) bool {
	switch regs.Orig_rax {
	case unix.SYS_EPOLL_WAIT, unix.SYS_EPOLL_PWAIT:
		return int32(regs.R10) < 0
	case unix.SYS_EPOLL_PWAIT2, unix.SYS_SEMTIMEDOP:
		return regs.R10 == 0
	case unix.SYS_RT_SIGTIMEDWAIT:
		return regs.Rdx == 0
	}
	return true
}
