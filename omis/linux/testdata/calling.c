// calling: threads wait in system calls of several kinds, with known values in the registers
// that a system call keeps. called is to be called from outside, where a thread waits; it
// changes every register that a function may change. At the end each thread says whether its
// system call had the result that it was to have.
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

volatile long calls;
static int word, pipes[2];
static const char *said[8];

void called(void);
__asm__(".text\n.globl called\n.type called, @function\ncalled:\n"
	"lock incq calls(%rip)\n"
	"mov %rsp, %rax; and $15, %eax; cmp $8, %eax; je 1f\n" // else the stack is not aligned
	"lock incq calls(%rip)\n"
	"1: mov $39, %eax; syscall\n"
	"mov $-77, %rax; mov %rax, %rcx; mov %rax, %rdx; mov %rax, %rsi; mov %rax, %rdi\n"
	"mov %rax, %r8; mov %rax, %r9; mov %rax, %r10; mov %rax, %r11\n"
	"pcmpeqd %xmm3, %xmm3; pcmpeqd %xmm9, %xmm9; fldpi; fstp %st(0); std; cld; stc\n"
	"movq %rax, -8(%rsp); movq %rax, -120(%rsp)\n"
	"ret\n.size called, .-called\n");

// waits makes a system call and checks what it is to leave as it was, the red zone included.
static long waits(long number, const long *arg) {
	long result = number, broken;
	register long r8 __asm__("r8") = arg[4], r9 __asm__("r9") = arg[5], r10 __asm__("r10") = arg[3];
	const double known[2] = {1.25, -3.5};
	__asm__ volatile(
		"movupd (%[known]), %%xmm3; movapd %%xmm3, %%xmm9; mov $0x4444, %%rbx; mov $0x1515, %%r15\n"
		"movq $0x123456, -120(%%rsp)\n"
		"syscall\n"
		"xor %[broken], %[broken]\n"
		"movupd (%[known]), %%xmm0; cmpneqpd %%xmm3, %%xmm0; movmskpd %%xmm0, %%ecx; or %%rcx, %[broken]\n"
		"movupd (%[known]), %%xmm0; cmpneqpd %%xmm9, %%xmm0; movmskpd %%xmm0, %%ecx; or %%rcx, %[broken]\n"
		"xor $0x4444, %%rbx; or %%rbx, %[broken]; xor $0x1515, %%r15; or %%r15, %[broken]\n"
		"movq -120(%%rsp), %%rcx; xor $0x123456, %%rcx; or %%rcx, %[broken]\n"
		: "+a"(result), [broken] "=&r"(broken)
		: "D"(arg[0]), "S"(arg[1]), "d"(arg[2]), "r"(r10), "r"(r8), "r"(r9), [known] "r"(known)
		: "rbx", "rcx", "r11", "r15", "xmm0", "xmm3", "xmm9", "memory", "cc");
	if (r8 != arg[4] || r9 != arg[5] || r10 != arg[3] || broken)
		return INT_MIN;
	return result;
}

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static const char *judge(long result, long want) {
	static char text[8][64];
	static int n;
	if (result == want)
		return "ok";
	char *t = text[__sync_fetch_and_add(&n, 1) % 8];
	snprintf(t, 64, "%ld", result);
	return t;
}

static void *reads(void *arg) {
	char c;
	said[0] = judge(waits(SYS_read, (long[6]){pipes[0], (long)&c, 1}), 1);
	return 0;
}

static void *polls(void *arg) {
	struct pollfd p = {pipes[0], POLLIN};
	said[1] = judge(waits(SYS_poll, (long[6]){(long)&p, 1, 60000}), 1);
	return 0;
}

static void *epolls(void *arg) {
	struct epoll_event e = {.events = EPOLLIN};
	int fd = epoll_create1(0);
	epoll_ctl(fd, EPOLL_CTL_ADD, pipes[0], &e);
	said[2] = judge(waits(SYS_epoll_wait, (long[6]){fd, (long)&e, 1, -1}), 1);
	return 0;
}

static void *futexes(void *arg) {
	struct timespec most = {60};
	said[3] = judge(waits(SYS_futex, (long[6]){(long)&word, FUTEX_WAIT, 0, (long)&most}), 0);
	return 0;
}

static void *sleeps(void *arg) {
	double begin = now();
	struct timespec time = {0, 900000000};
	long result = waits(SYS_nanosleep, (long[6]){(long)&time, (long)&time});
	double slept = now() - begin;
	said[4] = result == 0 && (slept < 0.9 || slept > 1.7) ? "not as long as it was to" : judge(result, 0);
	return 0;
}

static void handle(int sig) {}

int main(void) {
	struct sigaction sa = {.sa_handler = handle};
	sigaction(SIGUSR1, &sa, 0);
	void *(*all[])(void *) = {reads, polls, epolls, futexes, sleeps};
	pthread_t t[5];
	if (pipe(pipes))
		return 1;
	for (int i = 0; i < 5; i++)
		pthread_create(&t[i], 0, all[i], 0);
	printf("ready %p\n%p\n", (void *)called, (void *)&calls);
	fflush(stdout);
	getchar();
	word = 1;
	syscall(SYS_futex, &word, FUTEX_WAKE, 1);
	// Who polls is to see the byte before it is read.
	pthread_join(t[3], 0);
	pthread_join(t[4], 0);
	if (write(pipes[1], "abc", 3) != 3)
		return 1;
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], 0);
	printf("read %s, poll %s, epoll %s, futex %s, sleep %s\n", said[0], said[1], said[2], said[3], said[4]);
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
