//go:build linux

#include "go_asm.h"
#include "textflag.h"

#define SYS_rt_sigprocmask 14
#define SYS_gettid 186
#define SYS_futex  202
#define FUTEX_WAIT 0
#define FUTEX_WAKE 1
#define EINTR      -4
#define EAGAIN     -11
#define ETIMEDOUT  -110
#define SIG_SETMASK 2
#define OWNER_DIED_BIT 30

// The frame that hold pushes: sixteen registers as in Registers, the flags, and hold's
// return address, below the red zone of the interrupted code.
#define FRAME_FLAGS  const_frameFlags
#define FRAME_RETURN const_frameReturn
#define FRAME_SIZE   const_frameSize

#define LIMIT   (SP)
#define BEAT    const_localBeat(SP)
#define CROWDED const_localCrowded(SP)
#define MASK    const_localMask(SP)

// CALLKERNEL makes a system call whose number has the mark of calls that a thread makes for the monitor.
#define CALLKERNEL(number) MOVL $number, AX; ORQ board_mark(BX), AX; SYSCALL

// REST waits for a turn, unless the word at DI is not DX. R8, which the kernel ignores,
// says that the frame is complete and hold has begun nothing else: the thread may be sent
// back to its place.
#define REST MOVQ $0, LIMIT; MOVQ $const_turn, 8(SP); MOVL $FUTEX_WAIT, SI; MOVQ SP, R10; MOVQ $const_atRest, R8; CALLKERNEL(SYS_futex); XORL R8, R8

#define SETMASK(new) MOVL $SIG_SETMASK, DI; LEAQ new, SI; MOVL $8, R10; CALLKERNEL(SYS_rt_sigprocmask)
#define UNBLOCK XORL DX, DX; SETMASK(MASK)

#define REG(i) (slot_regs + 8*i)

#define COPY(from, to, i) MOVQ 8*i(from), AX; MOVQ AX, 8*i(to)
#define COPY4(from, to, i) COPY(from, to, i); COPY(from, to, (i+1)); COPY(from, to, (i+2)); COPY(from, to, (i+3))

// hold runs in the target, never here: its bytes are copied to arenaCode of an arena. A
// stub skips the red zone and calls it. It changes no vector register.
//
// BX board, BP frame, R12 owner, R13 thread, then the word while waiting, R14 slot
// number, then the last beat seen, R15 slot, R9 waits left
TEXT ·hold(SB), NOSPLIT|NOFRAME, $0-0
	PUSHFQ
	PUSHQ R15
	PUSHQ R14
	PUSHQ R13
	PUSHQ R12
	PUSHQ R11
	PUSHQ R10
	PUSHQ R9
	PUSHQ R8
	PUSHQ SP // space for rsp, whose value is computed
	PUSHQ BP
	PUSHQ DI
	PUSHQ SI
	PUSHQ BX
	PUSHQ CX
	PUSHQ DX
	PUSHQ AX
	MOVQ SP, BP
	SUBQ $const_localSize, SP
	MOVL $0, CROWDED
	LEAQ ·hold(SB), BX
	MOVQ -const_arenaCode(BX), BX
	TESTQ BX, BX
	JZ   out // a forked child is not held

	MOVL board_owner(BX), R12
	TESTL R12, R12
	JZ   nobody
	BTL  $OWNER_DIED_BIT, R12
	JC   nobody
	XORL R15, R15
	CMPL board_silent(BX), $0
	JNE  silence

	// While the gate is shut, no thread enters a hold.
gate:
	CMPL board_gate(BX), $0
	JEQ  open
	LEAQ board_gate(BX), DI
	MOVL $1, DX
	REST
	CMPL board_owner(BX), R12
	JNE  nobody
	JMP  gate
open:

	// Claim a slot. The thread asks for its id each time: a stored id would be wrong
	// after a fork, or for the next thread on this stack.
	CALLKERNEL(SYS_gettid)
	MOVL AX, R13
	MOVL AX, R14
search:
	XORL DX, DX
	MOVL $const_Slots, CX
claim:
	ANDL $(const_Slots-1), R14
	MOVL R14, R15
	IMULQ $slot__size, R15
	LEAQ board_slots(BX)(R15*1), R15
	XORL AX, AX
	CMPL slot_tid(R15), AX
	JNE  taken
	LOCK
	CMPXCHGL R13, slot_tid(R15)
	JEQ  claimed
taken:
	CMPL slot_tid(R15), R13
	JNE  others
	INCL DX
others:
	INCL R14
	DECL CX
	JNZ  claim

	// All slots are taken. If this thread itself has some of them, because signal
	// handlers interrupted it in holds, it must not wait for itself.
	TESTL DX, DX
	JNZ  deep

	// Slots become free soon, or the monitor is stopped or dead; no thread wakes this
	// one, so it polls. All signals are blocked: if their handlers came here, and others
	// interrupted those, the stack would overflow.
	CMPL CROWDED, $0
	JNE  turn
	MOVL $const_slotsTaken, CROWDED
	LOCK
	INCQ board_full(BX)
	MOVQ $-1, LIMIT
	LEAQ MASK, DX
	SETMASK(LIMIT)
	TESTL AX, AX
	JNZ  unblocked
	MOVL $const_signalsBlocked, CROWDED
unblocked:
	MOVL board_beat(BX), AX
	MOVL AX, BEAT
	MOVL board_queuing(BX), R9
turn:
	LEAQ board_owner(BX), DI
	MOVL R12, DX
	REST
	CMPL board_owner(BX), R12
	JNE  nobody
	MOVL board_beat(BX), AX
	CMPL AX, BEAT
	JEQ  quiet
	MOVL AX, BEAT
	MOVL board_queuing(BX), R9
	JMP  search
quiet:
	DECL R9
	JNZ  search
	MOVL $1, board_silent(BX)
	LOCK
	INCQ board_gaveUp(BX)
	JMP  out

deep:
	LOCK
	INCQ board_deep(BX)
	JMP  out

	// The monitor has shown no heartbeat for long. Wake it, but do not wait.
silence:
	LOCK
	INCQ board_gaveUp(BX)
	JMP  ring

claimed:
	LEAQ slot_regs(R15), DI
	COPY4(BP, DI, 0)
	COPY4(BP, DI, 4)
	COPY4(BP, DI, 8)
	COPY4(BP, DI, 12)
	LEAQ FRAME_SIZE(BP), AX
	MOVQ AX, REG(const_RSP)(R15)
	MOVQ FRAME_RETURN(BP), AX
	MOVQ (const_stubAddr-const_stubCopy)(AX), AX
	MOVQ AX, REG(const_RIP)(R15)
	MOVQ FRAME_FLAGS(BP), AX
	MOVQ AX, REG(const_RFlags)(R15)

	// The thread is held now. If the owner died before the thread could announce this
	// slot, the owner's word says so, because the kernel marks that one first.
	MOVL R12, AX
	XCHGL AX, slot_word(R15)
	CMPL board_owner(BX), R12
	JNE  lost

	MOVL R14, CX
	MOVL $1, AX
	SHLQ CX, AX
	LOCK
	ORQ  AX, board_pend(BX)
	MOVL board_beat(BX), R14
	MOVL board_patience(BX), R9

ring:
	CMPL board_sleeping(BX), $0
	JEQ  wait
	XORL AX, AX
	XCHGL AX, board_sleeping(BX)
	TESTL AX, AX
	JZ   wait
	LOCK
	INCL board_bell(BX)
	LEAQ board_bell(BX), DI
	MOVL $FUTEX_WAKE, SI
	MOVL $1, DX
	XORL R10, R10
	XORL R8, R8
	CALLKERNEL(SYS_futex)

wait:
	TESTQ R15, R15
	JZ   out
	MOVL R12, R13
	ORL  $const_futexWaiters, R13
	MOVL R12, AX
	LOCK
	CMPXCHGL R13, slot_word(R15)
	JNE  decided
sleep:
	MOVQ $0, LIMIT
	MOVQ $const_nap, 8(SP)
	LEAQ slot_word(R15), DI
	MOVL $FUTEX_WAIT, SI
	MOVL R13, DX
	MOVQ SP, R10
	XORL R8, R8
	CALLKERNEL(SYS_futex)
	CMPL slot_word(R15), R13
	JNE  decided
	CMPL AX, $ETIMEDOUT
	JEQ  late
	TESTL AX, AX
	JZ   sleep
	CMPL AX, $EINTR
	JEQ  sleep
	CMPL AX, $EAGAIN
	JEQ  sleep
	JMP  giveup // a filter refuses futex
late:
	CMPL board_owner(BX), R12
	JNE  lost
	MOVL board_beat(BX), AX
	CMPL AX, R14
	JEQ  silent
	MOVL AX, R14
	MOVL board_patience(BX), R9
	JMP  sleep
silent:
	DECL R9
	JNZ  sleep

	// The owner shows no heartbeat. Leave the slot to it, because it may still use it.
giveup:
	MOVL R13, AX
	MOVL $const_forsaken, CX
	LOCK
	CMPXCHGL CX, slot_word(R15)
	JNE  decided
	MOVL $1, board_silent(BX)
	LOCK
	INCQ board_gaveUp(BX)
	JMP  out

decided:
	CMPL slot_word(R15), $0
	JNE  lost
	CMPL CROWDED, $const_signalsBlocked
	JNE  goOn
	UNBLOCK
goOn:

	// Continue with the registers in the slot. Move the frame along with the stack
	// pointer, and change the stack pointer before writing the frame: a signal can arrive
	// at any time.
	MOVQ FRAME_RETURN(BP), R14
	MOVQ (const_stubAddr-const_stubCopy)(R14), AX
	CMPQ REG(const_RIP)(R15), AX
	JEQ  samePlace
	MOVQ REG(const_RIP)(R15), R14
samePlace:
	MOVQ REG(const_RSP)(R15), BP
	SUBQ $FRAME_SIZE, BP
	MOVQ BP, SP
	LEAQ slot_regs(R15), SI
	COPY4(SI, BP, 0)
	COPY4(SI, BP, 4)
	COPY4(SI, BP, 8)
	COPY4(SI, BP, 12)
	MOVQ REG(const_RFlags)(R15), AX
	MOVQ AX, FRAME_FLAGS(BP)
	MOVQ R14, FRAME_RETURN(BP)
	MOVL $0, slot_tid(R15)
	JMP  leave

	// The owner is dead: ignore what it may have written to the registers.
lost:
	XORL AX, AX
	XCHGL AX, slot_word(R15)
	MOVL $0, slot_tid(R15)
nobody:
	LOCK
	INCQ board_dead(BX)
out:
	CMPL CROWDED, $const_signalsBlocked
	JNE  leave
	UNBLOCK
leave:
	MOVQ BP, SP
	POPQ AX
	POPQ DX
	POPQ CX
	POPQ BX
	POPQ SI
	POPQ DI
	POPQ BP
	POPQ R8 // the space for rsp
	POPQ R8
	POPQ R9
	POPQ R10
	POPQ R11
	POPQ R12
	POPQ R13
	POPQ R14
	POPQ R15
	POPFQ
	BYTE $0xc2; BYTE $const_redZone; BYTE $0x00 // ret $128: to the copies, skipping the red zone
	BYTE $'e'; BYTE $'n'; BYTE $'d'; BYTE $' '; BYTE $'h'; BYTE $'e'; BYTE $'r'; BYTE $'e'

// holdAddress returns the address of hold; a Go function value would be the address of a
// wrapper.
TEXT ·holdAddress(SB), NOSPLIT, $0-8
	LEAQ ·hold(SB), AX
	MOVQ AX, ret+0(FP)
	RET
