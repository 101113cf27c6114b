// clock: asks for the time without end, three calls deep.
#include <stdint.h>
#include <stdio.h>
#include <time.h>

static volatile int64_t last;

__attribute__((noinline)) static int64_t now(int64_t x) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_nsec + x;
}

__attribute__((noinline)) static int64_t twice(int64_t x) { return now(x) + now(x + 1); }

__attribute__((noinline)) static void spin(void) {
	for (;;)
		last = twice(last);
}

int main(void) {
	printf("ready %p\n", (void *)spin);
	fflush(stdout);
	spin();
}
