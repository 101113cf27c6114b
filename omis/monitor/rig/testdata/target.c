/* A program, in C but for thrower.cc, whose functions are called a known number of times. It does what the
   lines of its standard input say, and answers each with a line. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "crowd.h"

#define ALONE __attribute__((noinline, noclone, noipa))

ALONE void nothing(void) { __asm__ volatile("" ::: "memory"); }

ALONE int work(int n) {
	for (volatile int i = 0; i < n; i++)
		;
	return n + 1;
}

ALONE long told(long a, long b, int c, long d, long e, int f) {
	return a + b + c + d + e + f;
}

ALONE long sized(long a, long b) { return a * 2 + b; }

/* sizes calls sized n times with each of some pairs. */
static void sizes(long n) {
	for (long i = 1; i <= n; i++)
		sized(i, 10), sized(-i, -10), sized(-1, 0), sized(i, -1), sized(0, -1), sized(1L << 32, 1L << 31), sized(0x7fffffffffffffff, 1);
}

/* tells has told be called n times, with arguments of all sizes and signs. */
static void *tells(void *n) {
	for (long i = 1; i <= (long)n; i++)
		told(i, -i, -(int)i, 10 * i, 1L << 62, (int)i);
	return 0;
}

ALONE int recurse(int n) {
	int r = n == 0 ? 1 : recurse(n - 1) + work(10);
	nothing();
	return r;
}

static __thread jmp_buf back;

ALONE int jump(int n) {
	if (n == 0)
		longjmp(back, 1);
	int r = jump(n - 1);
	nothing();
	return r + 1;
}

ALONE int catch(int n) {
	int r = 0;
	if (setjmp(back) == 0)
		r = jump(n);
	nothing();
	return r;
}

ALONE int nap(int ms) {
	struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
	nanosleep(&t, 0);
	return ms;
}

int caught(int n); /* thrower.cc */

static void *calls(void *n) {
	for (long i = 0; i < (long)n; i++)
		work(20);
	return 0;
}

static int number; /* of the thread that called work last */

static void *numbered(void *n) {
	number = gettid();
	return calls(n);
}

/* sameNumber has threads call work one after the other, each with the number of the one before unless another program
   got that. The kernel gives a thread the number behind the one in the file; with what was there before, other programs
   get numbers as usual. The threads begin at different clock ticks, which is how the monitor tells them apart. */
static void sameNumber(int threads, long each) {
	for (int i = 0; i < threads; i++) {
		pthread_t t;
		int file = open("/proc/sys/kernel/ns_last_pid", O_RDWR);
		char before[20] = "", now[20];
		pread(file, before, sizeof before - 1, 0);
		if (i > 0)
			pwrite(file, now, sprintf(now, "%d", number - 1), 0);
		pthread_create(&t, 0, numbered, (void *)each);
		pwrite(file, before, strlen(before), 0);
		close(file);
		pthread_join(t, 0);
		nap(20);
	}
}

static void *forever(void *unused) {
	for (;;)
		work(200);
	return unused;
}

static int child(int n) {
	pid_t pid = fork();
	if (pid == 0) {
		for (int i = 0; i < n; i++)
			work(20);
		_exit(7);
	}
	int status;
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

/* generated makes code at run time. */
static void *generated(void) {
	static const unsigned char code[] = {0x55, 0x5d, 0xc3}; /* push, pop, ret */
	unsigned char *p = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(p, code, sizeof code);
	return p;
}

int main(int argc, char **argv) {
	char line[200], what[20];
	pthread_t t;
	setvbuf(stdout, 0, _IOLBF, 0);
	printf("ready %p\n", generated());
	while (fgets(line, sizeof line, stdin)) {
		long a = 0, b = 0;
		int r = 0;
		sscanf(line, "%19s %ld %ld", what, &a, &b);
		if (!strcmp(what, "call"))
			calls((void *)a);
		else if (!strcmp(what, "together"))
			together(a, b);
		else if (!strcmp(what, "onebyone"))
			oneByOne(a, b);
		else if (!strcmp(what, "samenumber"))
			sameNumber(a, b);
		else if (!strcmp(what, "tells"))
			tells((void *)a);
		else if (!strcmp(what, "sizes"))
			sizes(a);
		else if (!strcmp(what, "crowd")) {
			pthread_t all[16];
			for (long i = 0; i < a && i < 16; i++)
				pthread_create(&all[i], 0, tells, (void *)(b + i));
			for (long i = 0; i < a && i < 16; i++)
				pthread_join(all[i], 0);
		} else if (!strcmp(what, "recurse"))
			r = recurse(a);
		else if (!strcmp(what, "jump"))
			for (; b > 0; b--)
				r = catch(a);
		else if (!strcmp(what, "nap"))
			r = nap(a);
		else if (!strcmp(what, "fork"))
			r = child(a);
		else if (!strcmp(what, "throw"))
			for (; b > 0; b--)
				r = caught(a);
		else if (!strcmp(what, "forever"))
			pthread_create(&t, 0, forever, 0);
		else if (!strcmp(what, "exec")) {
			execv("/proc/self/exe", argv);
			return 9;
		}
		printf("done %d\n", r + 0 * argc);
	}
	return 0;
}
