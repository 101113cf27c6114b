#include "textflag.h"

// A function of the dummy is made of places to probe and of work between them. All the
// places have one stack pointer, so that an interval may go from any of the first group
// to any of the second. Offsets are those of site.go. R8 says how long to work.
#define FILL QUAD $0xcccccccccccccccc

// The work is a chain of multiplications, from one call to the next, so that none begins
// before the other has ended; in a loop that is short enough for its end to be foreseen: a
// branch that is not would cost more or less where there are probes.
#define IMUL BYTE $0x48; BYTE $0x0f; BYTE $0xaf; BYTE $0xc0 // imul %rax, %rax

#define FUNCTION \
	BYTE $0x53 \ // 0: push %rbx
	BYTE $0x5b \ // pop %rbx
	BYTE $0x0f; BYTE $0x1f; BYTE $0x44; BYTE $0x00; BYTE $0x00 \ // 2: nop of five bytes
	BYTE $0x44; BYTE $0x89; BYTE $0xc1 \ // mov %r8d, %ecx
	BYTE $0x0f; BYTE $0x1f; BYTE $0x80; LONG $0 \ // nop of seven bytes
	BYTE $0x48; BYTE $0xba; QUAD $1 \ // 17: movabs, %rdx
	BYTE $0x0f; BYTE $0x1f; BYTE $0x00 \ // nop of three bytes
	BYTE $0x90 \ // 30: nop, before the target of a branch
	IMUL; IMUL; IMUL; IMUL; IMUL; IMUL; IMUL; IMUL \ // 31
	BYTE $0xff; BYTE $0xc9 \ // dec %ecx
	BYTE $0x75; BYTE $0xdc \ // jne 31
	BYTE $0x90 \ // 67: nop, before the target of a branch
	BYTE $0x85; BYTE $0xc9 \ // 68: test %ecx, %ecx
	BYTE $0x75; BYTE $0xfc \ // jne 68, never taken
	BYTE $0x48; BYTE $0xba; QUAD $1 \ // 72: movabs, %rdx
	BYTE $0x0f; BYTE $0x1f; BYTE $0x44; BYTE $0x00; BYTE $0x00 \ // 82: nop of five bytes
	BYTE $0x53 \ // 87: push %rbx
	BYTE $0x5b \ // pop %rbx
	BYTE $0xc3 \ // 89: ret
	FILL; FILL; FILL; FILL; BYTE $0xcc; BYTE $0xcc; BYTE $0xcc; BYTE $0xcc; BYTE $0xcc; BYTE $0xcc

#define FUNCTIONS \
	FUNCTION \
	FUNCTION \
	FUNCTION \
	FUNCTION \
	FUNCTION \
	FUNCTION \
	FUNCTION \
	FUNCTION \
	FUNCTION \
	FUNCTION \
	FUNCTION \
	FUNCTION

// dummy is the whole code of the dummy: it is copied into a program of its own, which
// enters it at its beginning. It reads orders of four words, a function's address, how
// often to call it, how long it is to work and how far calls may be apart, and answers each
// with the nanoseconds that this took, until there are no more. How far they are apart is
// drawn anew for each; the same numbers come for each order.
TEXT ·dummy(SB), NOSPLIT|NOFRAME, $0-0
	ANDQ $~63, SP
	SUBQ $128, SP
next:
	XORL AX, AX             // read
	XORL DI, DI
	MOVQ SP, SI
	MOVL $32, DX
	SYSCALL
	CMPQ AX, $32
	JNE  end
	MOVL $228, AX           // clock_gettime
	MOVL $1, DI             // CLOCK_MONOTONIC
	LEAQ 48(SP), SI
	SYSCALL
	MOVQ 0(SP), R12
	MOVQ 8(SP), R13
	MOVQ 16(SP), R8
	MOVQ 24(SP), R14
	MOVQ $6364136223846793005, R15 // Knuth's MMIX
	MOVQ R15, BX
again:
	CALL R12
	IMULQ R15, BX
	INCQ BX
	MOVQ BX, CX             // the upper bits look like chance
	SHRQ $32, CX
	ANDQ R14, CX
	JZ   done
rest:
	DECQ CX
	JNZ  rest
done:
	DECQ R13
	JNZ  again
	MOVL $228, AX
	MOVL $1, DI
	LEAQ 64(SP), SI
	SYSCALL
	MOVQ 64(SP), AX
	SUBQ 48(SP), AX
	IMULQ $1000000000, AX
	ADDQ 72(SP), AX
	SUBQ 56(SP), AX
	MOVQ AX, 80(SP)
	MOVL $1, AX             // write
	MOVL $1, DI
	LEAQ 80(SP), SI
	MOVL $8, DX
	SYSCALL
	JMP  next
end:
	MOVL $231, AX           // exit_group
	XORL DI, DI
	SYSCALL
	FUNCTIONS
	FUNCTIONS
	RET

// func begin() uintptr
TEXT ·begin(SB), NOSPLIT, $0-8
	LEAQ ·dummy(SB), AX
	MOVQ AX, ret+0(FP)
	RET
