/* A program with a function during which its thread makes a known number of system calls, waits and touches new pages.
   The program asks the kernel what it counts for the thread, just inside of the function and just outside, so that
   what is measured at its ends lies between the two. It does what the lines of its standard input say, and answers
   each with a line of the sums. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { page = 4096 };

struct counts { long faults, waits, displaced; };

static struct counts now(void) {
	struct rusage u;
	getrusage(RUSAGE_THREAD, &u);
	return (struct counts){u.ru_minflt, u.ru_nvcsw, u.ru_nivcsw};
}

static void add(struct counts *sum, struct counts begin, struct counts end) {
	sum->faults += end.faults - begin.faults, sum->waits += end.waits - begin.waits;
	sum->displaced += end.displaced - begin.displaced;
}

static int dump; /* a file that the function writes to: 100 bytes, 101 and so on */

struct job {
	int number; /* of its thread */
	long times, calls, naps, pages, writes, quiet, crossed;
	struct counts inside, outside;
	long made, most; /* system calls of the function: of all its executions, and of one */
};

/* nap sleeps until the kernel has counted a wait: the time of a short sleep may be over before the thread waits. It
   returns how many system calls it has made: two for each sleep. */
static long nap(long *waits) {
	struct timespec t = {0, 1000000};
	long before = *waits, made = 0;
	for (; *waits == before; made += 2) {
		syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &t, 0);
		*waits = now().waits;
	}
	return made;
}

/* gain makes system calls, naps and touches pages; it makes two more system calls to ask for the numbers inside. */
__attribute__((noinline, noclone)) void gain(struct job *j, char *fresh) {
	struct counts begin = now();
	long waits = begin.waits, made = 2 + j->calls + j->writes;
	for (long i = 0; i < j->calls; i++)
		syscall(SYS_getppid);
	for (long i = 0; i < j->naps; i++)
		made += nap(&waits);
	for (long i = 0; i < j->pages; i++)
		fresh[i * page] = 1;
	for (long i = 0; i < j->writes; i++)
		if (write(dump, fresh, 100 + i) != 100 + i)
			abort();
	add(&j->inside, begin, now());
	j->made += made;
	if (made > j->most)
		j->most = made;
}

/* quiet makes no system calls. */
__attribute__((noinline, noclone)) long quiet(long n) {
	volatile long sum = 0;
	for (long i = 0; i < n; i++)
		sum += i;
	return sum;
}

/* opens and closes are called at different depths of the stack. */
__attribute__((noinline, noclone)) long opens(long n) { return n + syscall(SYS_getppid); }
__attribute__((noinline, noclone)) long closes(long n) { return n - syscall(SYS_getppid); }

__attribute__((noinline, noclone)) long deep(long n) {
	volatile char room[200];
	room[0] = n;
	return n ? room[0] + deep(n - 1) : closes(n);
}

/* cross opens three times, and closes three times: five system calls after it has opened once, three after it has
   opened twice, and once without having opened. */
static void cross(void) {
	opens(1);
	for (int i = 0; i < 3; i++)
		syscall(SYS_getppid);
	deep(5);
	deep(2);
	opens(2);
	opens(3);
	syscall(SYS_getppid);
	closes(4);
}

/* grows allocates memory; it stores what the allocator says just inside of it. */
static void *grown;
static size_t heap[2];

static size_t allocated(void) {
	struct mallinfo2 m = mallinfo2();
	return m.uordblks + m.hblkhd;
}

__attribute__((noinline, noclone)) void grows(size_t size) {
	heap[0] = allocated();
	grown = malloc(size);
	heap[1] = allocated();
}

static void *gaining(void *p) {
	struct job *j = p;
	for (long i = 0; i < j->crossed; i++)
		cross();
	for (long i = 0; i < j->quiet; i++)
		quiet(100);
	size_t size = (j->pages + 1) * page;
	for (long i = 0; i < j->times; i++) {
		char *fresh = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		madvise(fresh, size, MADV_NOHUGEPAGE);
		struct counts begin = now();
		gain(j, fresh);
		add(&j->outside, begin, now());
		munmap(fresh, size);
	}
	return 0;
}

/* half makes a system call and is left by longjmp each second time. */
static jmp_buf back;

__attribute__((noinline, noclone)) long half(long turn) {
	long parent = syscall(SYS_getppid);
	if (turn % 2)
		longjmp(back, 1);
	return parent - syscall(SYS_getppid);
}

static void jump(long times) {
	for (volatile long i = 0; i < times; i++)
		if (!setjmp(back))
			half(i);
}

static void run(int threads, struct job j) {
	pthread_t t[64];
	struct job each[64];
	for (int i = 0; i < threads; i++) {
		each[i] = j;
		each[i].number = i;
		pthread_create(&t[i], 0, gaining, &each[i]);
	}
	for (int i = 0; i < threads; i++) {
		pthread_join(t[i], 0);
		struct counts none = {0};
		add(&j.inside, none, each[i].inside), add(&j.outside, none, each[i].outside);
		j.made += each[i].made;
		if (each[i].most > j.most)
			j.most = each[i].most;
	}
	printf("done %ld %ld %ld %ld %ld %ld %ld %ld\n", j.inside.faults, j.outside.faults, j.inside.waits, j.outside.waits,
	       j.inside.displaced, j.outside.displaced, j.made, j.most);
}

int main(void) {
	char line[200];
	setvbuf(stdout, 0, _IOLBF, 0);
	dump = open("/dev/null", O_WRONLY);
	printf("ready %p\n", (void *)main);
	while (fgets(line, sizeof line, stdin)) {
		int threads;
		long times;
		struct job j = {0};
		if (sscanf(line, "gain %d %ld %ld %ld %ld", &threads, &j.times, &j.calls, &j.naps, &j.pages) == 5)
			run(threads, j);
		else if (sscanf(line, "write %d %ld %ld", &threads, &j.times, &j.writes) == 3)
			run(threads, j);
		else if (sscanf(line, "quiet %d %ld", &threads, &j.quiet) == 2)
			run(threads, j);
		else if (sscanf(line, "cross %d %ld", &threads, &j.crossed) == 2)
			run(threads, j);
		else if (sscanf(line, "grow %ld", &times) == 1)
			free(grown), grows(times), printf("done %zu %zu\n", heap[0], heap[1]);
		else if (sscanf(line, "closes %d", &threads) == 1)
			closes(threads), printf("done\n");
		else if (sscanf(line, "opens %d", &threads) == 1)
			opens(threads), printf("done\n");
		else if (sscanf(line, "jump %ld", &times) == 1)
			jump(times), printf("done\n");
		else
			return 1;
	}
	return 0;
}
