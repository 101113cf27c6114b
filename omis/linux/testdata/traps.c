// traps: after a line on standard input two threads trap themselves without end, up to the next line; then
// it says how many of these traps their handler did not see.
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

static atomic_long made, seen, stop;

__attribute__((noinline)) uint64_t work(uint64_t x) { return x * 3 + 1; }

static void see(int sig) { seen++; }

static void *run(void *arg) {
	while (!stop) {
		__asm__ volatile("int3");
		made++;
	}
	return 0;
}

int main(void) {
	signal(SIGTRAP, see);
	printf("ready %p\n", (void *)work);
	fflush(stdout);
	getchar();
	pthread_t t[2];
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], 0, run, 0);
	getchar();
	stop = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], 0);
	printf("missed %ld\n", made - seen);
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
