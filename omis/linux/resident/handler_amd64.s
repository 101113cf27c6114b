//go:build linux

#include "textflag.h"

// The code below runs in the target, never here: its bytes are copied to the beginning of
// home, which is page-aligned (see layout.go for the offsets).

// Offsets in home, ucontext_t and siginfo_t.
#define ARENAS   0x610
#define ARENAS_END 0x710
#define OLD      0x720
#define COUNT    0x780
#define STEPPING 0x788
#define DEFAULT  0x7a0 // a struct sigaction of zeros: SIG_DFL
#define ENTRIES  0x1000
#define UC_RIP   168
#define UC_EFLAGS 176
#define SI_CODE  8

#define SI_KERNEL 0x80
#define SIGTRAP   5
#define SYS_rt_sigaction 13
#define SYS_getpid 39
#define SYS_gettid 186
#define SYS_tgkill 234
#define RETURN_MARK 0x4d4952410000000f // calls.Marked(SYS_rt_sigreturn)

// handler(DI signal, SI *siginfo_t, DX *ucontext_t). It may change AX CX R8-R11, and must
// preserve DI SI DX for a handler that it calls.
TEXT ·handler(SB), NOSPLIT|NOFRAME, $0-0
	// lea -7(%rip), %r8: the address of this instruction, which is home's.
	BYTE $0x4c; BYTE $0x8d; BYTE $0x05; LONG $0xfffffff9

	CMPL SI_CODE(SI), $SI_KERNEL
	JEQ  raised

	// A single step (TRAP_BRKPT after a system call, else TRAP_TRACE) that the monitor
	// requested before it died. Any other signal, for example from kill, belongs to the
	// program.
	CMPL STEPPING(R8), $0
	JEQ  chain
	MOVL SI_CODE(SI), AX
	DECL AX
	CMPL AX, $1
	JHI  chain
	ANDL $~0x100, UC_EFLAGS(DX)
	JMP  done
raised:

	// If rip is one byte after a breakpoint in the table, continue in its copy.
	MOVQ UC_RIP(DX), AX
	LEAQ -1(AX), R9
	MOVQ COUNT(R8), CX
	LEAQ ENTRIES(R8), R10
entry:
	TESTQ CX, CX
	JZ   notfound
	CMPQ (R10), R9
	JEQ  found
	ADDQ $32, R10
	DECQ CX
	JMP  entry
found:
	MOVQ 8(R10), AX
	MOVQ AX, UC_RIP(DX)

	// R8 marks the rt_sigreturn of the restorer as a call for the monitor. AX cannot (see restorer).
done:
	MOVQ $RETURN_MARK, R8
	RET

	// The monitor may have moved the thread to its copy already, and died before it could
	// suppress the signal.
notfound:
	LEAQ ARENAS(R8), R10
	LEAQ ARENAS_END(R8), R11
arena:
	CMPQ AX, (R10)
	JB   nextarena
	CMPQ AX, 8(R10)
	JB   done
nextarena:
	ADDQ $16, R10
	CMPQ R10, R11
	JB   arena

	// Do what the program's own action for SIGTRAP requires.
chain:
	MOVQ OLD(R8), AX
	CMPQ AX, $1
	JA   call
	JB   die
	// The kernel does not apply SIG_IGN to a trap that the processor raised.
	CMPL SI_CODE(SI), $SI_KERNEL
	JEQ  die
	RET
call:
	JMP  AX

	// SIG_DFL: rt_sigaction(SIGTRAP, SIG_DFL); tgkill(getpid(), gettid(), SIGTRAP).
die:
	LEAQ DEFAULT(R8), SI
	MOVL $SIGTRAP, DI
	XORL DX, DX
	MOVL $8, R10
	MOVL $SYS_rt_sigaction, AX
	SYSCALL
	MOVL $SYS_getpid, AX
	SYSCALL
	MOVL AX, DI
	MOVL $SYS_gettid, AX
	SYSCALL
	MOVL AX, SI
	MOVL $SIGTRAP, DX
	MOVL $SYS_tgkill, AX
	SYSCALL
	RET
	BYTE $'e'; BYTE $'n'; BYTE $'d'; BYTE $' '; BYTE $'h'; BYTE $'e'; BYTE $'r'; BYTE $'e'

// restorer returns from the handler. Unwinders recognise a signal frame by exactly these
// bytes: mov $15, %rax (seven bytes long); syscall.
TEXT ·restorer(SB), NOSPLIT|NOFRAME, $0-0
	BYTE $0x48; BYTE $0xc7; BYTE $0xc0; LONG $0x0000000f
	SYSCALL
	BYTE $'e'; BYTE $'n'; BYTE $'d'; BYTE $' '; BYTE $'h'; BYTE $'e'; BYTE $'r'; BYTE $'e'

// sweep changes the actions of the signals in the set R8: it reads each action, adds
// SIGTRAP to its mask or removes it, and writes the action back if that made a
// difference. R10 is 8. Its block of memory (see SweepCall) begins at FRAME(SP). It ends
// with an INT3, at which the monitor takes over the thread; without a monitor, the
// handler above continues the thread behind the INT3, in the end of the stub, which
// restores the registers from the stack.
#define FRAME 88
#define BLOCK_MASK    (FRAME+24) // of the action
#define BLOCK_BLOCK   (FRAME+32) // 1: add to the masks, 0: remove
#define BLOCK_CHANGED (FRAME+40) // signals whose actions changed
#define BLOCK_NUMBER  (FRAME+48) // of the system call rt_sigaction
TEXT ·sweep(SB), NOSPLIT|NOFRAME, $0-0
next:
	TESTQ R8, R8
	JZ    swept
	BSFQ  R8, DI
	BTRQ  DI, R8
	INCL  DI
	XORL  SI, SI
	LEAQ  FRAME(SP), DX
	MOVL  BLOCK_NUMBER(SP), AX
	SYSCALL
	TESTL AX, AX
	JNZ   next
	CMPQ  BLOCK_BLOCK(SP), $0
	JNE   block
	BTRQ  $(SIGTRAP-1), BLOCK_MASK(SP)
	JCC   next
	JMP   set
block:
	BTSQ  $(SIGTRAP-1), BLOCK_MASK(SP)
	JCS   next
set:
	MOVQ  DX, SI
	XORL  DX, DX
	MOVL  BLOCK_NUMBER(SP), AX
	SYSCALL
	TESTL AX, AX
	JNZ   next
	LEAQ  -1(DI), CX
	BTSQ  CX, BLOCK_CHANGED(SP)
	JMP   next
swept:
	// The assembler's INT $3 would take two bytes. If a process has uprobes, the kernel
	// finds no breakpoint behind such an instruction, and lets the thread execute the
	// second byte.
	BYTE  $0xcc
	BYTE $'e'; BYTE $'n'; BYTE $'d'; BYTE $' '; BYTE $'h'; BYTE $'e'; BYTE $'r'; BYTE $'e'

// The addresses of the code above; a Go function value would be the address of a wrapper.

TEXT ·handlerAddress(SB), NOSPLIT, $0-8
	LEAQ ·handler(SB), AX
	MOVQ AX, ret+0(FP)
	RET

TEXT ·restorerAddress(SB), NOSPLIT, $0-8
	LEAQ ·restorer(SB), AX
	MOVQ AX, ret+0(FP)
	RET

TEXT ·sweepAddress(SB), NOSPLIT, $0-8
	LEAQ ·sweep(SB), AX
	MOVQ AX, ret+0(FP)
	RET
