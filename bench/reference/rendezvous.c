// rendezvous: the minimum cost of a rendezvous by futexes. It is target and monitor in
// one program, two processes that share memory: the target calls hook before work. hook
// writes the registers into a slot, wakes the monitor, and waits; the monitor reads one
// register and adds it to a counter. The slots are on the monitor's robust list, which is
// necessary if either process may die. It reads lines N like target.c.
#define _GNU_SOURCE
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "work.h"

enum { SLOTS = 64, REGISTERS = 17 };

struct slot {
	_Atomic uint32_t word, tid;
	uint64_t regs[REGISTERS];
	char pad[256 - 8 - 8 * REGISTERS];
};

struct board {
	_Atomic uint32_t owner;
	char pad0[60];
	_Atomic uint32_t bell;
	char pad1[60];
	_Atomic uint32_t sleeping;
	char pad2[60];
	_Atomic uint64_t pend;
	char pad3[4096 - 3 * 64 - 8];
	struct slot slots[SLOTS];
};

static struct board *board;

static long futex(_Atomic uint32_t *word, int op, uint32_t value, const struct timespec *limit) {
	register long r10 __asm__("r10") = (long)limit;
	long r;
	__asm__ volatile("syscall" : "=a"(r) : "a"(SYS_futex), "D"(word), "S"(op), "d"(value), "r"(r10) : "rcx", "r11", "memory");
	return r;
}

// hook calls hold with the registers that it has saved.
__attribute__((used)) void hold(uint64_t *regs) {
	static __thread uint32_t self;
	uint32_t owner = board->owner, none = 0;
	if (!owner || owner & FUTEX_OWNER_DIED)
		return;
	if (!self)
		self = syscall(SYS_gettid);
	int i = self % SLOTS, tries = 0;
	while (!atomic_compare_exchange_strong(&board->slots[i].tid, &none, self)) {
		none = 0;
		i = (i + 1) % SLOTS;
		if (++tries == SLOTS)
			return;
	}
	struct slot *s = &board->slots[i];
	for (int r = 0; r < REGISTERS; r++)
		s->regs[r] = regs[r];
	atomic_exchange(&s->word, owner);
	if (board->owner == owner) {
		atomic_fetch_or(&board->pend, 1ull << i);
		if (board->sleeping && atomic_exchange(&board->sleeping, 0)) {
			board->bell++;
			futex(&board->bell, FUTEX_WAKE, 1, 0);
		}
		uint32_t held = owner, waiting = owner | FUTEX_WAITERS;
		struct timespec nap = {0, 100000000};
		if (atomic_compare_exchange_strong(&s->word, &held, waiting))
			while (s->word == waiting && board->owner == owner)
				futex(&s->word, FUTEX_WAIT, waiting, &nap);
		if (!s->word)
			for (int r = 0; r < REGISTERS; r++)
				regs[r] = s->regs[r];
	}
	s->word = 0;
	s->tid = 0;
}

void hook(void);
__asm__(".globl hook\nhook:\n"
	"	pushfq\n	push %rax\n	push %rbx\n	push %rcx\n	push %rdx\n	push %rsi\n	push %rdi\n	push %rbp\n	push %r8\n	push %r9\n"
	"	push %r10\n	push %r11\n	push %r12\n	push %r13\n	push %r14\n	push %r15\n	push %rsp\n"
	"	mov %rsp, %rdi\n	mov %rsp, %rbp\n	and $-16, %rsp\n	call hold\n	mov %rbp, %rsp\n"
	"	lea 8(%rsp), %rsp\n	pop %r15\n	pop %r14\n	pop %r13\n	pop %r12\n	pop %r11\n	pop %r10\n	pop %r9\n	pop %r8\n	pop %rbp\n"
	"	pop %rdi\n	pop %rsi\n	pop %rdx\n	pop %rcx\n	pop %rbx\n	pop %rax\n	popfq\n	ret\n");

// nodes mirrors the board in the monitor's own memory: it contains the nodes of the
// robust list, each at the same distance from its word.
struct nodes {
	struct robust_list owner;
	char pad[4096 - sizeof(struct robust_list)];
	struct { struct robust_list node; char pad[256 - sizeof(struct robust_list)]; } slots[SLOTS];
	struct robust_list_head head;
};

static struct nodes *robust(void) {
	struct nodes *n = mmap(0, sizeof *n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (n == MAP_FAILED)
		_exit(1);
	n->head.futex_offset = (char *)board - (char *)n;
	n->head.list.next = &n->owner;
	n->owner.next = &n->slots[0].node;
	for (int i = 0; i < SLOTS; i++)
		n->slots[i].node.next = i + 1 < SLOTS ? &n->slots[i + 1].node : &n->head.list;
	syscall(SYS_set_robust_list, &n->head, sizeof n->head);
	return n;
}

static void monitor(void) {
	volatile uint64_t counter = 0;
	struct nodes *n = robust();
	board->owner = syscall(SYS_gettid);
	for (;;) {
		uint64_t set = board->pend ? atomic_exchange(&board->pend, 0) : 0;
		if (!set) {
			uint32_t bell = board->bell;
			board->sleeping = 1;
			if (!board->pend)
				futex(&board->bell, FUTEX_WAIT, bell, 0);
			board->sleeping = 0;
		}
		for (; set; set &= set - 1) {
			int i = __builtin_ctzll(set);
			struct slot *s = &board->slots[i];
			counter += s->regs[10];
			*(struct robust_list *volatile *)&n->head.list_op_pending = &n->slots[i].node;
			if (atomic_exchange(&s->word, 0) & FUTEX_WAITERS)
				futex(&s->word, FUTEX_WAKE, 1, 0);
			*(struct robust_list *volatile *)&n->head.list_op_pending = 0;
		}
	}
}

static int64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

int main(void) {
	board = mmap(0, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board == MAP_FAILED)
		return 1;
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		monitor();
	}
	while (!board->owner)
		usleep(1000);
	setvbuf(stdout, 0, _IOLBF, 0);
	printf("ready %p %p\n", (void *)work, (void *)board);
	char line[256];
	volatile uint64_t sum = 0;
	while (fgets(line, sizeof line, stdin)) {
		long calls = atol(line);
		int64_t t = now();
		for (long i = 0; i < calls; i++) {
			__asm__ volatile("sub $128, %%rsp\n	call hook\n	add $128, %%rsp" ::: "memory", "cc");
			sum += work(sum + i);
		}
		printf("%lld\n", (long long)(now() - t));
	}
	return 0;
}
