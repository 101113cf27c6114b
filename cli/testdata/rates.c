/* This program calls one function as often as possible and another twenty times a second. It
   answers each line on the standard input with the numbers of calls. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

__attribute__((noinline)) uint64_t hot(uint64_t x) {
	for (int i = 0; i < 20; i++)
		__asm__ volatile("imul $1103515245, %0, %0" : "+r"(x));
	return x;
}

__attribute__((noinline)) uint64_t cold(uint64_t x) {
	__asm__ volatile("" : "+r"(x));
	return x + 1;
}

static volatile uint64_t hots, colds, sink;

static int64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static void *work(void *unused) {
	for (int64_t next = now();;) {
		for (int i = 0; i < 1000; i++) {
			sink = hot(sink);
			hots = hots + 1;
		}
		if (now() >= next) {
			sink = cold(sink);
			colds = colds + 1;
			next = now() + 50000000;
		}
	}
	return unused;
}

int main(void) {
	char line[10];
	pthread_t thread;
	pthread_create(&thread, 0, work, 0);
	while (fgets(line, sizeof line, stdin)) {
		printf("%llu %llu\n", (unsigned long long)hots, (unsigned long long)colds);
		fflush(stdout);
	}
	return 0;
}
