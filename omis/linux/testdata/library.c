// library: after a line on standard input, two threads call functions of the C library: strtol 300 times
// each, from two places; qsort, whose comparison calls strtol and once in three leaves by longjmp.
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static __thread jmp_buf out;
static __thread int leave;

__attribute__((noinline)) uint64_t work(uint64_t x) { return x; }

static int compare(const void *a, const void *b) {
	if (leave)
		longjmp(out, 1);
	return strtol("7", 0, 10) - 7;
}

static void *run(void *arg) {
	long sum = 0;
	char text[16];
	for (int i = 0; i < 100; i++) {
		snprintf(text, sizeof text, "%d", i);
		sum += strtol(text, 0, 10);
		sum += strtol("100", 0, 16);
		int v[2] = {2, 1};
		leave = i % 3 == 0;
		if (!setjmp(out))
			qsort(v, 2, sizeof v[0], compare);
		if (leave)
			sum += strtol("9", 0, 10);
		}
	return (void *)sum;
}

int main(void) {
	pthread_t t[2];
	printf("ready %p\n", (void *)work);
	fflush(stdout);
	getchar();
	void *r[2];
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], 0, run, 0);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], &r[i]);
	printf("sum %ld %ld\n", (long)r[0], (long)r[1]);
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
