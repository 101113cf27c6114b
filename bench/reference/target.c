// target THREADS: the program on which monitors are compared. It prints the addresses of
// work and of a page to which instructions may be copied, then obeys the lines of its
// standard input:
//
//	N                    every thread (the main one if THREADS is 0) calls work N
//	                     times; the answer is the time this took in nanoseconds
//	call NUMBER A B C D E F   makes a system call; the answer is its result
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "work.h"

static long calls;
static pthread_barrier_t begin, end;

static void run(void) {
	volatile uint64_t sum = 0;
	for (long i = 0; i < calls; i++)
		sum += work(sum + i);
}

static void *loop(void *unused) {
	for (;;) {
		pthread_barrier_wait(&begin);
		run();
		pthread_barrier_wait(&end);
	}
	return unused;
}

static int64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static int64_t measure(int threads) {
	int64_t t = now();
	if (!threads) {
		run();
	} else {
		pthread_barrier_wait(&begin);
		pthread_barrier_wait(&end);
	}
	return now() - t;
}

int main(int argc, char **argv) {
	int threads = argc > 1 ? atoi(argv[1]) : 0;
	void *page = mmap((void *)0x10000000, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (page == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	pthread_barrier_init(&begin, 0, threads + 1);
	pthread_barrier_init(&end, 0, threads + 1);
	for (int i = 0; i < threads; i++) {
		pthread_t t;
		if (pthread_create(&t, 0, loop, 0)) {
			perror("pthread_create");
			return 1;
		}
	}
	setvbuf(stdout, 0, _IOLBF, 0);
	printf("ready %p %p\n", (void *)work, page);
	char line[256];
	while (fgets(line, sizeof line, stdin)) {
		long n, a[6] = {0};
		if (sscanf(line, "call %ld %ld %ld %ld %ld %ld %ld", &n, a, a + 1, a + 2, a + 3, a + 4, a + 5) >= 1) {
			n = syscall(n, a[0], a[1], a[2], a[3], a[4], a[5]);
			printf("%ld\n", n);
		} else {
			calls = atol(line);
			printf("%lld\n", (long long)measure(threads));
		}
	}
	return 0;
}
