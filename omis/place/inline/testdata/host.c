/* A program that runs code which somebody else writes into its memory, and looks whether
   the code leaves everything as it was. It does what the lines of its standard input
   say, and answers each with a line. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CODE_SIZE 0x100000

static char *code;
static void (*function)(long); /* it gets a 3 */

/* Where code plays code of Go, a thread runs a goroutine: one of its own, or one that all
   share, which must not run at the same time then. */
struct goroutine {
	uint64_t stack_begin, stack_end;
};
static struct goroutine shared_goroutine;
static __thread struct goroutine own_goroutine, *goroutine;
static int sharing;

/* go_on has the goroutine's stack end a certain distance above the caller's frame. */
static inline __attribute__((always_inline)) void go_on(void) {
	goroutine = sharing ? &shared_goroutine : &own_goroutine;
	goroutine->stack_end = (uint64_t)__builtin_frame_address(0) + 4096;
}

/* State as check_run loads it, and as it stores it: flags, then registers. */
enum { FLAGS, RAX, RBX, RCX, RDX, RSI, RDI, RBP, R8, R9, R10, R11, R12, R13, R14, R15, STATE };
uint64_t check_in[STATE], check_out[STATE], check_rsp, check_rsp_out, check_own;
void *check_code;
void check_run(void), check_back(void);

__asm__(
	".globl check_run, check_back\n"
	"check_run:\n"
	"  push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
	"  mov %rsp, check_own(%rip)\n"
	"  lea check_in(%rip), %rsp\n"
	"  popfq; pop %rax; pop %rbx; pop %rcx; pop %rdx; pop %rsi; pop %rdi; pop %rbp\n"
	"  pop %r8; pop %r9; pop %r10; pop %r11; pop %r12; pop %r13; pop %r14; pop %r15\n"
	"  mov check_rsp(%rip), %rsp\n"
	"  jmp *check_code(%rip)\n"
	"check_back:\n"
	"  mov %rsp, check_rsp_out(%rip)\n"
	"  lea check_out+128(%rip), %rsp\n"
	"  push %r15; push %r14; push %r13; push %r12; push %r11; push %r10; push %r9; push %r8\n"
	"  push %rbp; push %rdi; push %rsi; push %rdx; push %rcx; push %rbx; push %rax; pushfq\n"
	"  mov check_own(%rip), %rsp\n"
	"  pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
	"  ret\n");

static uint64_t dice(void) {
	static uint64_t x = 88172645463325252;
	x ^= x << 13, x ^= x >> 7, x ^= x << 17;
	return x;
}

/* check runs code n times, each time with other registers, flags and memory. Where a
   function begins or returns, flags and what is below the stack pointer may change. */
static const char *check(void *at, int n, int dead) {
	static unsigned char stack[4096], before[4096];
	static char vectors[2][512] __attribute__((aligned(64)));
	static char wrong[100];
	const uint64_t changes = 0x8d5; /* CF PF AF ZF SF OF */
	const int below = dead ? 0 : 128;
	check_code = at;
	go_on();
	goroutine->stack_end = (uint64_t)(stack + sizeof stack);
	for (int i = 0; i < n; i++) {
		for (int k = 0; k < STATE; k++)
			check_in[k] = dice();
		check_in[FLAGS] = 0x202 | (dice() & changes);
		for (unsigned k = 0; k < sizeof stack; k++)
			stack[k] = before[k] = dice();
		check_rsp = (uint64_t)(stack + 2048 + dice() % 64 * 8);
		__asm__ volatile("fxsave %0" : "=m"(vectors[0]));
		check_run();
		__asm__ volatile("fxsave %0" : "=m"(vectors[1]));
		if (check_rsp != check_rsp_out)
			return "the stack pointer has changed";
		for (int k = dead ? 1 : 0; k < STATE; k++)
			if (check_in[k] != check_out[k]) {
				sprintf(wrong, "register %d is %lx, and was %lx", k, check_out[k], check_in[k]);
				return wrong;
			}
		for (unsigned char *p = (unsigned char *)check_rsp - below; p < stack + sizeof stack; p++)
			if (*p != before[p - stack])
				return "the stack has changed";
		if (memcmp(vectors[0], vectors[1], 416))
			return "vector registers have changed";
	}
	return "done";
}

static __attribute__((noinline)) void *calls(void *n) {
	go_on();
	for (long i = 0; i < (long)n; i++)
		function(3);
	return 0;
}

static pthread_barrier_t all_there;

static void *callsTogether(void *each) {
	pthread_barrier_wait(&all_there);
	calls(each);
	pthread_barrier_wait(&all_there);
	return 0;
}

/* together has threads call the function that are all there at the same time. */
static void together(int threads, long each) {
	pthread_t t[1000];
	pthread_barrier_init(&all_there, 0, threads);
	for (int i = 0; i < threads; i++)
		pthread_create(&t[i], 0, callsTogether, (void *)each);
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], 0);
	pthread_barrier_destroy(&all_there);
}

static void oneByOne(int threads, long each) {
	for (int i = 0; i < threads; i++) {
		pthread_t t;
		pthread_create(&t, 0, calls, (void *)each);
		pthread_join(t, 0);
	}
}

static long handled;
static timer_t alarm_clock;
static volatile int armed, depth;

/* arm has a signal come within 40 us. A timer that goes by itself would raise signals faster
   than a slow machine can handle them, each on top of the one before, until the stack is
   full. */
static void arm(void) {
	static volatile unsigned random = 1;
	struct itimerspec soon = {{0, 0}, {0, 500 + (random = random * 1103515245 + 12345) / 65536 % 40000}};
	armed = 1;
	timer_settime(alarm_clock, 0, &soon, 0);
}

static void handler(int unused) {
	armed = 0;
	if (++depth < 8)
		arm(); /* the next signal may interrupt the handler */
	function(3);
	__atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED); /* another signal may come in between */
	depth--;
	(void)unused;
}

/* storm calls the function for so many milliseconds while signals interrupt it, whose
   handler calls it as well, on the thread's stack or on another. It tells how often the
   function was called in all. */
static long storm(int ms, int other) {
	static char stack[1 << 24];
	stack_t s = {.ss_sp = stack, .ss_size = sizeof stack};
	struct sigaction a = {.sa_handler = handler, .sa_flags = SA_RESTART | SA_NODEFER | (other ? SA_ONSTACK : 0)};
	struct timespec begin, now;
	long n = 0;
	sigaltstack(&s, 0);
	sigaction(SIGUSR1, &a, 0);
	handled = armed = depth = 0;
	struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	timer_create(CLOCK_MONOTONIC, &e, &alarm_clock);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		for (int i = 0; i < 1000; i++, n++) {
			if (!armed)
				arm();
			function(3);
		}
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < ms);
	timer_delete(alarm_clock);
	signal(SIGUSR1, SIG_IGN);
	return n + __atomic_load_n(&handled, __ATOMIC_RELAXED);
}

/* quickest tells how many picoseconds a call takes at least: of calls of which each
   needs the result of the one before, or that may overlap. */
static long quickest(uint64_t (*f)(uint64_t), int dependent) {
	static volatile uint64_t sink;
	const int calls = 5000;
	long least = 1l << 60;
	go_on();
	for (int batch = 0; batch < 60; batch++) {
		struct timespec a, b;
		uint64_t s = batch;
		clock_gettime(CLOCK_MONOTONIC, &a);
		if (dependent)
			for (int i = 0; i < calls; i++)
				s = f(s + i);
		else
			for (int i = 0; i < calls; i++)
				s += f(i);
		clock_gettime(CLOCK_MONOTONIC, &b);
		sink = s;
		long ns = (b.tv_sec - a.tv_sec) * 1000000000l + b.tv_nsec - a.tv_nsec;
		if (ns < least)
			least = ns;
	}
	return least * 1000 / calls;
}

static void *sleeps(void *unused) {
	for (;;)
		pause();
	return unused;
}

static int thread_pointer_distance(void) {
	char *fs;
	__asm__("mov %%fs:0, %0" : "=r"(fs));
	for (int at = 64; at < 4096; at += 4)
		if (*(int *)(fs + at) == getpid())
			return at;
	return -1;
}

int main(int argc, char **argv) {
	char line[200], what[20];
	long size = atol(argv[1]);
	int shared = memfd_create("shared", 0), text = memfd_create("text", 0);
	if (argc < 2 || ftruncate(shared, size) || ftruncate(text, CODE_SIZE))
		return 1;
	char *base = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, shared, 0);
	code = mmap(0, CODE_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED, text, 0);
	if (base == MAP_FAILED || code == MAP_FAILED)
		return 2;
	pthread_t sleeper;
	sigset_t all, none;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &none); /* signals are for the first thread */
	pthread_create(&sleeper, 0, sleeps, 0);
	pthread_sigmask(SIG_SETMASK, &none, 0);
	setvbuf(stdout, 0, _IOLBF, 0);
	char *fs;
	__asm__("mov %%fs:0, %0" : "=r"(fs));
	printf("ready %d %d %p %p %p %d %ld\n", shared, text, base, code, check_back, thread_pointer_distance(), (long)((char *)&goroutine - fs));
	while (fgets(line, sizeof line, stdin)) {
		long at = 0, a = 0, b = 0;
		int status;
		sscanf(line, "%19s %ld %ld %ld", what, &at, &a, &b);
		function = (void (*)(long))(code + at);
		if (!strcmp(what, "call"))
			calls((void *)a);
		else if (!strcmp(what, "together"))
			together(a, b);
		else if (!strcmp(what, "onebyone"))
			oneByOne(a, b);
		else if (!strcmp(what, "share"))
			sharing = a;
		else if (!strcmp(what, "storm")) {
			printf("%ld\n", storm(a, b));
			continue;
		} else if (!strcmp(what, "time")) {
			printf("%ld\n", quickest((uint64_t (*)(uint64_t))function, a));
			continue;
		} else if (!strcmp(what, "check")) {
			puts(check(code + at, a, b));
			continue;
		} else if (!strcmp(what, "vfork")) {
			if (vfork() == 0) {
				function(3);
				_exit(0);
			}
			wait(&status);
		}
		puts("done");
	}
	return 0;
}
