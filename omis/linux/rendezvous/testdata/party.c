// party THREADS CALLS [MODE]: prints the addresses of work and of an instruction in the
// middle of a function. After a line on standard input, every thread calls work CALLS
// times; then party prints the sum of the results and waits for the end of its input.
//
//	signals   SIGALRM arrives all the time, and its handler calls work too
//	fork      the sum is computed by a forked child
//	filter    the main thread calls, and a seccomp filter refuses futexes
//	check     one call after the other; "kept" is printed if no register was changed
//	middle    as check, with the instruction in the middle
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static long calls;
static pthread_barrier_t begin;
static volatile uint64_t aside;

__attribute__((noinline, noipa)) uint64_t work(uint64_t x) {
	for (int i = 0; i < 8; i++)
		x = x * 6364136223846793005ull + 1442695040888963407ull;
	return x;
}

// uses the red zone and the carry flag before and after the instruction in its middle
uint64_t leaf(uint64_t x);
extern char middle[];
__asm__(".text\n.p2align 4\n.globl leaf\n.type leaf, @function\nleaf:\n"
	"	mov %rdi, -8(%rsp)\n	mov %rdi, -128(%rsp)\n	stc\n"
	".globl middle\nmiddle:\n"
	"	lea 1(%rdi), %rax\n"
	"	mov %rax, %rcx\n"
	"	adc $0, %rax\n"
	"	add -8(%rsp), %rax\n	add -128(%rsp), %rax\n	ret\n.size leaf, .-leaf\n");

// calls leaf or work with all registers set, and compares; bit i of the result: register i changed
uint64_t changed(uint64_t (*f)(uint64_t));
__asm__(".text\nchanged:\n"
	"	push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n push %rdi\n"
	"	mov $0x1111, %ebx\n mov $0x2222, %ebp\n mov $0x3333, %r12d\n mov $0x4444, %r13d\n mov $0x5555, %r14d\n mov $0x6666, %r15d\n"
	"	mov $0x7777, %r9d\n mov $0x8888, %r10d\n mov $0x9999, %r11d\n mov $0xaaaa, %esi\n movq %r9, %xmm0\n movq %r10, %xmm15\n"
	"	mov $5, %edi\n	mov (%rsp), %rax\n	call *%rax\n	mov %rax, %r8\n	xor %eax, %eax\n"
	"	cmp $0x1111, %rbx\n je 1f\n or $1, %eax\n1:	cmp $0x2222, %rbp\n je 1f\n or $2, %eax\n1:	cmp $0x3333, %r12\n je 1f\n or $4, %eax\n"
	"1:	cmp $0x4444, %r13\n je 1f\n or $8, %eax\n1:	cmp $0x5555, %r14\n je 1f\n or $16, %eax\n1:	cmp $0x6666, %r15\n je 1f\n or $32, %eax\n"
	"1:	cmp $0x7777, %r9\n je 1f\n or $64, %eax\n1:	cmp $0x8888, %r10\n je 1f\n or $128, %eax\n1:	cmp $0x9999, %r11\n je 1f\n or $256, %eax\n"
	"1:	cmp $0xaaaa, %rsi\n je 1f\n or $512, %eax\n1:	movq %xmm0, %rcx\n cmp %r9, %rcx\n je 1f\n or $1024, %eax\n"
	"1:	movq %xmm15, %rcx\n cmp %r10, %rcx\n je 1f\n or $2048, %eax\n"
	"1:	cmp $17, %r8\n je 1f\n or $4096, %eax\n1:	pop %rdi\n pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n	ret\n");

// returns 17 for 5, like leaf, and changes nothing else
uint64_t plain(uint64_t x);
__asm__(".text\n.p2align 4\n.globl plain\n.type plain, @function\nplain:\n	lea 12(%rdi), %rax\n	nop\n	ret\n.size plain, .-plain\n");

static void *run(void *arg) {
	uint64_t sum = 0, id = (uint64_t)arg;
	pthread_barrier_wait(&begin);
	for (long i = 0; i < calls; i++)
		sum += work(sum ^ id ^ i);
	return (void *)sum;
}

/* ring handles SIGALRM: it calls the watched function, and a signal that arrives meanwhile
   does so too, but the nesting is limited while the monitor holds the thread. */
static void ring(int sig) {
	static volatile int depth;
	if (depth == 20)
		return;
	depth++;
	aside += work(sig);
	depth--;
}

static void filter(void) {
	struct sock_filter refuse[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {4, refuse};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
	uint64_t sum = 0;
	for (long i = 0; i < calls; i++)
		sum += work(sum ^ i);
	printf("sum %lx\n", sum);
}

static void check(uint64_t (*f)(uint64_t)) {
	uint64_t bad = 0;
	for (long i = 0; i < calls; i++)
		bad |= changed(f);
	if (bad)
		printf("changed %lx\n", bad);
	else
		puts("kept");
}

static void sum(int n, int fd) {
	uint64_t sum = 0, r;
	pthread_t *t = calloc(n, sizeof *t);
	pthread_barrier_init(&begin, 0, n);
	for (long i = 0; i < n; i++)
		pthread_create(&t[i], 0, run, (void *)i);
	for (int i = 0; i < n; i++) {
		pthread_join(t[i], (void **)&r);
		sum += r;
	}
	dprintf(fd, "sum %lx\n", sum);
}

int main(int argc, char **argv) {
	int n = atoi(argv[1]);
	calls = atol(argv[2]);
	const char *mode = argc > 3 ? argv[3] : "";
	printf("ready %p %p %p\n", (void *)work, (void *)middle, (void *)plain);
	fflush(stdout);
	getchar();
	if (!strcmp(mode, "check"))
		check(plain);
	else if (!strcmp(mode, "middle"))
		check(leaf);
	else if (!strcmp(mode, "value"))
		printf("value %lx\n", work(calls));
	else if (!strcmp(mode, "filter"))
		filter();
	else if (!strcmp(mode, "fork")) {
		pid_t child = fork();
		if (!child) {
			sum(n, 1);
			_exit(0);
		}
		waitpid(child, 0, 0);
	} else {
		struct itimerval often = {{0, 300}, {0, 300}}, never = {{0}};
		struct sigaction act = {.sa_handler = ring, .sa_flags = SA_NODEFER};
		if (!strcmp(mode, "signals")) {
			sigaction(SIGALRM, &act, 0);
			setitimer(ITIMER_REAL, &often, 0);
		}
		sum(n, 1);
		setitimer(ITIMER_REAL, &never, 0);
	}
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
