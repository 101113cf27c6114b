#include "textflag.h"

// A function of the dummy consists of places to probe and work between them. All places
// have the same stack pointer, so that an interval may go from any place of the first
// group to any of the second. The offsets are those in code.go. R8 is the number of
// rounds of work.
#define FILL QUAD $0xcccccccccccccccc

// The work is a chain of dependent multiplications that continues from one call to the
// next, so that calls do not overlap. It is a loop short enough for the processor to
// predict its end: a mispredicted branch would cost more or less if there are probes.
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

// dummy is the entire code of the dummy, which is copied into a program of its own and
// entered at its beginning. It reads orders of four words: a function's address, the
// number of calls, the rounds of work, and the greatest pause between calls. It answers
// each order with the nanoseconds that it took, and exits at the end of its input. The
// pauses are random, but the same for each order.
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
	MOVQ BX, CX             // the upper bits are the most random
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
