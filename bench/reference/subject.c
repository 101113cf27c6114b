/* A program whose functions are probed. It obeys the lines it reads, and answers each
   with one line:

	pin CPU                        run on one CPU from now on; -1: on any
	cost FUNCTION lb|tb N BATCHES  nanoseconds of a call of FUNCTION, and of its twin
	mix FUNCTION N FILLER BATCHES  the same, with other work between calls
	run FUNCTION N CALLS           nanoseconds that so many calls took
	twin FUNCTION N CALLS          the same for its twin
	threads FUNCTION N COUNT MS    calls, CPU nanoseconds and wall nanoseconds of COUNT threads
	spared FUNCTION N COUNT MS     the same for its twin
	syscalls BATCHES               nanoseconds of a system call

   A function works for N rounds of four cycles. Each has a twin, the same code under
   another name, which is not probed: the two alternate in batches of a millisecond, and
   the quickest batch of each counts. lb: each call waits for the result of the one
   before; tb: it does not, and calls overlap as far as the processor can.

   The functions differ in their first instruction: the kernel emulates a push at a
   uprobe, but must single-step a mov and an endbr64. The mov of moved is five bytes long,
   as a fast tracepoint of gdb requires. fenced is pushed with two readings of an ordered
   clock compiled in. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "obedient.h"
#ifdef WITH_TRACEPOINTS
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "provider.h"
#endif

#define WORK \
	"  mov %esi, %ecx\n" \
	"1: imul $1103515245, %rax, %rax\n" \
	"  add $12345, %rax\n" \
	"  dec %ecx\n" \
	"  jnz 1b\n"

#define FUNCTION(name, entry, exit) \
	".p2align 6\n" \
	".globl " name ", " name "_ret\n" \
	".type " name ", @function\n" \
	name ":\n" entry WORK exit \
	name "_ret: ret\n" \
	".size " name ", .-" name "\n"

#define BOTH(name, entry, exit) FUNCTION(name, entry, exit) FUNCTION(name "_twin", entry, exit)

/* READ reads the time stamp counter and stores the lower half: the minimum work to measure
   the function's duration, at both ends. */
#define READ(how, where) \
	"  push %rax\n  push %rcx\n  push %rdx\n" \
	"  " how "\n  mov %eax, " where "(%rip)\n" \
	"  pop %rdx\n  pop %rcx\n  pop %rax\n"

__asm__(
	".text\n"
	BOTH("pushed", "  push %rbp\n  mov %rdi, %rax\n", "  pop %rbp\n")
	BOTH("guarded", "  endbr64\n  push %rbp\n  mov %rdi, %rax\n", "  pop %rbp\n")
	BOTH("moved", "  mov $12345, %eax\n  add %rdi, %rax\n", "")
	FUNCTION("fenced", READ("lfence\n  rdtsc", "began") "  push %rbp\n  mov %rdi, %rax\n", "  pop %rbp\n" READ("rdtscp", "ended"))
	".comm began, 8\n.comm ended, 8\n"
	".p2align 6\n");

typedef uint64_t function(uint64_t, uint64_t);
function pushed, pushed_twin, guarded, guarded_twin, moved, moved_twin, fenced;

#ifdef WITH_TRACEPOINTS
__attribute__((noinline, noclone)) uint64_t traced(uint64_t x, uint64_t n) {
	lttng_ust_tracepoint(mirador_bench, entry);
	x = pushed_twin(x, n);
	lttng_ust_tracepoint(mirador_bench, exit);
	return x;
}

__attribute__((noinline, noclone)) uint64_t traced_twin(uint64_t x, uint64_t n) {
	__asm__ volatile("");
	x = pushed_twin(x, n);
	__asm__ volatile("");
	return x;
}

__attribute__((noinline, noclone)) uint64_t counted(uint64_t x, uint64_t n) {
	lttng_ust_tracepoint(mirador_bench, entry);
	x = pushed_twin(x, n);
	__asm__ volatile("");
	return x;
}
#endif

static const struct pair {
	const char *name;
	function *probed, *twin;
} functions[] = {
	{"pushed", pushed, pushed_twin},
	{"guarded", guarded, guarded_twin},
	{"moved", moved, moved_twin},
	{"fenced", fenced, pushed_twin},
#ifdef WITH_TRACEPOINTS
	{"traced", traced, traced_twin},
	{"counted", counted, traced_twin},
#endif
};

enum { SHORTEST = 4, WARM_UP = 50 };
static const double BATCH = 1e6;

static double clock_ns(clockid_t id) {
	struct timespec t;
	clock_gettime(id, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static double now(void) { return clock_ns(CLOCK_MONOTONIC); }

static volatile uint64_t sink;

/* The loops are separate functions, so that the compiler treats each call in the same way. */
__attribute__((noinline, noclone)) static double dependent(function *f, uint64_t n, uint64_t filler, long calls) {
	uint64_t x = 1;
	double begin = now();
	for (long i = 0; i < calls; i++)
		x = f(x, n);
	sink = x;
	return now() - begin;
}

__attribute__((noinline, noclone)) static double independent(function *f, uint64_t n, uint64_t filler, long calls) {
	uint64_t x = 1;
	double begin = now();
	for (long i = 0; i < calls; i++)
		x ^= f(i, n);
	sink = x;
	return now() - begin;
}

__attribute__((noinline, noclone)) static double mixed(function *f, uint64_t n, uint64_t filler, long calls) {
	uint64_t x = 1;
	double begin = now();
	for (long i = 0; i < calls; i++)
		x ^= f(pushed_twin(i, filler), n);
	sink = x;
	return now() - begin;
}

typedef double loop(function *, uint64_t, uint64_t, long);

/* A slow function is called less often; the shortest batch has SHORTEST calls. */
static long calls_of(loop *go, function *f, uint64_t n, uint64_t filler) {
	go(f, n, filler, filler > 10000 ? SHORTEST : WARM_UP);
	double one = go(f, n, filler, 10) / 10;
	long calls = BATCH / one;
	return calls < SHORTEST ? SHORTEST : calls;
}

static void compare(const struct pair *p, loop *go, uint64_t n, uint64_t filler, long batches) {
	function *which[2] = {p->probed, p->twin};
	double least[2] = {1e18, 1e18};
	long calls[2];
	for (int i = 0; i < 2; i++)
		calls[i] = calls_of(go, which[i], n, filler);
	for (long b = 0; b < batches; b++)
		for (int i = 0; i < 2; i++) {
			double each = go(which[i], n, filler, calls[i]) / calls[i];
			if (each < least[i])
				least[i] = each;
		}
	printf("%.4f %.4f\n", least[0], least[1]);
}

static void syscalls(long batches) {
	double least = 1e18;
	for (long b = 0; b < batches; b++) {
		long calls = 0;
		double begin = now(), took;
		do {
			for (int i = 0; i < 100; i++)
				syscall(SYS_getppid);
			calls += 100;
		} while ((took = now() - begin) < BATCH);
		if (took / calls < least)
			least = took / calls;
	}
	printf("%.4f\n", least);
}

/* The state of many threads, which begin together and continue until the time is over. */
struct crowd {
	function *f;
	uint64_t n;
	double until;
	pthread_barrier_t begin;
	double cpu, calls;
	pthread_mutex_t lock;
};

static void *member(void *arg) {
	struct crowd *c = arg;
	uint64_t x = 1;
	double calls = 0;
	x = c->f(x, c->n); /* a probe allocates memory at a thread's first hit */
	pthread_barrier_wait(&c->begin);
	double begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	do {
		for (int i = 0; i < 20; i++)
			x = c->f(x, c->n);
		calls += 20;
	} while (now() < c->until);
	double took = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
	sink = x;
	pthread_mutex_lock(&c->lock);
	c->cpu += took;
	c->calls += calls;
	pthread_mutex_unlock(&c->lock);
	return 0;
}

static void threads(function *f, uint64_t n, int count, double ms) {
	struct crowd c = {.f = f, .n = n, .lock = PTHREAD_MUTEX_INITIALIZER};
	pthread_t *all = calloc(count, sizeof *all);
	pthread_barrier_init(&c.begin, 0, count + 1);
	for (int i = 0; i < count; i++)
		if (pthread_create(&all[i], 0, member, &c))
			exit(1);
	double begin = now();
	c.until = begin + ms * 1e6;
	pthread_barrier_wait(&c.begin);
	for (int i = 0; i < count; i++)
		pthread_join(all[i], 0);
	printf("%.0f %.0f %.0f\n", c.calls, c.cpu, now() - begin);
	free(all);
}

static const struct pair *find(const char *name) {
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
		if (!strcmp(functions[i].name, name))
			return &functions[i];
	fprintf(stderr, "subject: there is no function %s\n", name);
	exit(2);
}

static int obey(const char *line) {
	char name[20], mode[3];
	unsigned long long n, filler;
	long batches;
	int count;
	double ms;
	if (sscanf(line, "pin %d", &count) == 1) {
		pin(count);
		puts("pinned");
	} else if (sscanf(line, "cost %19s %2s %llu %ld", name, mode, &n, &batches) == 4)
		compare(find(name), strcmp(mode, "lb") ? independent : dependent, n, 0, batches);
	else if (sscanf(line, "mix %19s %llu %llu %ld", name, &n, &filler, &batches) == 4)
		compare(find(name), mixed, n, filler, batches);
	else if (sscanf(line, "run %19s %llu %ld", name, &n, &batches) == 3)
		printf("%.0f\n", dependent(find(name)->probed, n, 0, batches));
	else if (sscanf(line, "twin %19s %llu %ld", name, &n, &batches) == 3)
		printf("%.0f\n", dependent(find(name)->twin, n, 0, batches));
	else if (sscanf(line, "threads %19s %llu %d %lf", name, &n, &count, &ms) == 4)
		threads(find(name)->probed, n, count, ms);
	else if (sscanf(line, "spared %19s %llu %d %lf", name, &n, &count, &ms) == 4)
		threads(find(name)->twin, n, count, ms);
	else if (sscanf(line, "syscalls %ld", &batches) == 1)
		syscalls(batches);
	else
		return 0;
	return 1;
}
